"""Compiled, under fake tensors and under activation checkpointing: same loss, same gradient, same counts."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Dict, Iterator

import pytest
import torch
from detection_cases import CASES
from detection_cases import batch as batch_of
from loss_cases import CROSS_ENTROPY, assert_equal, scores_and_labels
from loss_checks import value_and_grad
from this_stack import skip_where_one_hot_waits
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from wrapped_cases import ALL, batch, build

from mmguard.losses.mmseg import GuardedCrossEntropyLoss, GuardedLoss

COMPILED: Dict[str, Dict[str, Any]] = {
    'softmax': {'class_weight': [0.5, 1.0, 2.0, 1.0]},
    'sigmoid': {'use_sigmoid': True, 'class_weight': [0.5, 1.0, 2.0, 1.0], 'avg_non_ignore': True},
    'clip': {'on_invalid': 'clip'},
    'mask': {'use_mask': True},
}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize(
    ('scope', 'mode', 'backend'),
    [
        *(('mmseg', mode, backend) for mode in COMPILED for backend in ('eager', 'aot_eager')),
        *(('mmdet', mode, 'aot_eager') for mode in ('softmax', 'sigmoid')),
    ],
)
def test_full_graph(scope: str, mode: str, backend: str) -> None:
    scores, label = scores_and_labels((2, 4, 6, 5))
    label[:, 0], label[0, 1, :3] = 255, 19
    args: tuple = (label, None, None, None, 255)
    if mode == 'mask':
        args = (torch.ones(2, 6, 5), torch.tensor([1, 19]))
    eager, guarded = (CROSS_ENTROPY[scope][1](**COMPILED[mode]) for _ in range(2))
    compiled = torch.compile(guarded, fullgraph=True, backend=backend)
    for seed in range(3):
        scores = torch.randn(scores.shape, generator=torch.Generator().manual_seed(seed))
        assert_equal(value_and_grad(compiled, scores, *args), value_and_grad(eager, scores, *args))
    counts = guarded.take_counts().tolist()
    assert counts == eager.take_counts().tolist()
    assert sum(counts[1:]) == 3 * (1 if mode == 'mask' else 3)
    value_and_grad(compiled, scores, *args)
    assert [3 * number for number in guarded.take_counts().tolist()] == counts


@pytest.mark.parametrize('name', ['focal', 'focal, activated', 'focal, custom', 'custom CE', 'custom CE, sigmoid'])
@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
def test_wrapped_losses_of_mmdet(name: str, backend: str) -> None:
    if name.startswith('focal'):
        skip_where_one_hot_waits()
    case = CASES[name]
    given = batch_of(case, weight='rows')
    given.label[:5] = 19
    eager, guarded = case.guard(), case.guard()
    compiled = torch.compile(guarded, fullgraph=True, backend=backend)
    for avg_factor in (None, 5.0):
        expected = value_and_grad(eager, given.scores, given.target(case), given.weight, avg_factor=avg_factor)
        actual = value_and_grad(compiled, given.scores, given.target(case), given.weight, avg_factor=avg_factor)
        assert_equal(actual, expected)
    assert guarded.take_counts().tolist() == eager.take_counts().tolist() == [48, 10, 0]


FakeTensorMode = pytest.importorskip('torch._subclasses.fake_tensor').FakeTensorMode
MODES: Dict[str, Dict[str, Any]] = {
    'softmax': {},
    'softmax, weighted': {'class_weight': [0.5, 1.0, 2.0, 1.0]},
    'sigmoid': {'use_sigmoid': True},
    'sigmoid, weighted': {'use_sigmoid': True, 'class_weight': [0.5, 1.0, 2.0, 1.0], 'avg_non_ignore': True},
    'mask': {'use_mask': True, 'class_weight': [0.5, 1.0, 2.0, 1.0]},
    'clip': {'on_invalid': 'clip', 'class_weight': [0.5, 1.0, 2.0, 1.0]},
}


def arguments(mode: str) -> tuple:
    if mode == 'mask':
        scores, _ = scores_and_labels((3, 4, 2, 2))
        return scores, torch.ones(3, 2, 2), torch.tensor([0, 9, 3])
    scores, label = scores_and_labels((2, 4, 3, 5))
    label[0, 0, 0], label[0, 0, 1] = 255, 19
    return scores, label, torch.ones(label.shape), 20.0


def propagate(make: Callable[[], torch.nn.Module], mode: str, times: int = 1) -> torch.nn.Module:
    """Calls the loss that ``make`` returns under fake tensors."""
    given = arguments(mode)  # outside: torch 2.1 draws no fake numbers from a generator
    with FakeTensorMode() as fake_mode:
        loss = make()
        for _ in range(times):
            leaf, *rest = (fake_mode.from_tensor(a) if isinstance(a, Tensor) else a for a in given)
            leaf.requires_grad_()
            value = loss(leaf, *rest)
            assert value.shape == ((1,) if mode == 'mask' else ())
            value.sum().backward()
            assert leaf.grad.shape == leaf.shape
    return loss


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_module_built_outside(scope: str, mode: str) -> None:
    guarded = CROSS_ENTROPY[scope][1](**MODES[mode])
    fresh = CROSS_ENTROPY[scope][1](**MODES[mode])
    expected = value_and_grad(fresh, *arguments(mode))
    for _ in range(2):
        propagate(lambda: guarded, mode)
        assert_equal(value_and_grad(guarded, *arguments(mode)), expected)
    assert guarded.take_counts().tolist() == [2 * number for number in fresh.take_counts().tolist()]


@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('scope', CROSS_ENTROPY)
def test_module_built_inside(scope: str, mode: str) -> None:
    guarded = propagate(lambda: CROSS_ENTROPY[scope][1](**MODES[mode]), mode, times=2)
    assert guarded.take_counts() is None
    expected = value_and_grad(CROSS_ENTROPY[scope][1](**MODES[mode]), *arguments(mode))
    assert_equal(value_and_grad(guarded, *arguments(mode)), expected)


@pytest.mark.parametrize('name', [name for name in ALL if name.startswith(('focal', 'tversky'))])
def test_wrapped_losses_that_wait_for_nothing_themselves(name: str) -> None:
    if name.startswith('tversky'):
        skip_where_one_hot_waits()
    guarded = GuardedLoss(build(name))
    scores, label = batch(name)
    with FakeTensorMode() as fake_mode:
        leaf = fake_mode.from_tensor(scores).requires_grad_()
        guarded(leaf, fake_mode.from_tensor(label)).sum().backward()
        assert leaf.grad.shape == leaf.shape
    assert guarded.take_counts() is None


@pytest.mark.parametrize('name', [name for name in CASES if name.startswith(('focal', 'eqlv2', 'custom'))])
def test_losses_of_mmdet_that_wait_for_nothing_themselves(name: str) -> None:
    if name.startswith('focal'):
        skip_where_one_hot_waits()
    case = CASES[name]
    given = batch_of(case, weight='rows')
    given.label[:5] = 19
    for on_invalid, weight, factor in itertools.product(('ignore', 'clip'), (None, given.weight), (None, 4.0)):
        guarded = case.guard(on_invalid=on_invalid)
        with FakeTensorMode(allow_non_fake_inputs=True) as fake_mode:
            leaf = fake_mode.from_tensor(given.scores).requires_grad_()
            weighed = None if weight is None else fake_mode.from_tensor(weight)
            guarded(leaf, fake_mode.from_tensor(given.label), weighed, avg_factor=factor).sum().backward()
            assert leaf.grad.shape == leaf.shape
        assert guarded.take_counts() is None


@pytest.mark.parametrize('use_reentrant', [False, True])
@pytest.mark.parametrize('name', ['ohem', 'lovasz', 'focal', 'dice, softmax', 'tversky', 'own class'])
def test_labels_are_counted_once(name: str, use_reentrant: bool) -> None:
    loss = GuardedCrossEntropyLoss() if name == 'own class' else GuardedLoss(build(name))
    scores, label = batch('ohem' if name == 'own class' else name)
    label[0] = 77

    def step(leaf: torch.Tensor) -> torch.Tensor:
        return (loss(leaf.sin(), label) * leaf.mean()).exp()

    for _ in range(2):
        checkpoint(step, scores.clone().requires_grad_(), use_reentrant=use_reentrant).backward()
        assert loss.take_counts().tolist() == [48, 24, 0]


@pytest.mark.parametrize('name', ['ohem', 'focal', 'dice, softmax', 'own class'])
def test_a_call_of_a_transform_leaves_the_counter_as_it_was(name: str) -> None:
    """A batched tensor in it would make the next ordinary call raise."""
    func = pytest.importorskip('torch.func')
    loss = GuardedCrossEntropyLoss() if name == 'own class' else GuardedLoss(build(name))
    scores, label = batch('ohem' if name == 'own class' else name)
    label[0] = 77
    loss(scores.requires_grad_(), label)
    if name == 'ohem':  # selects by value
        with pytest.raises(RuntimeError, match='vmap'):
            func.vmap(loss)(scores.unsqueeze(1), label.unsqueeze(1))
    else:
        func.vmap(loss)(scores.unsqueeze(1), label.unsqueeze(1))
    func.grad(loss)(scores, label)
    loss(scores, label).sum().backward()
    assert loss.take_counts().tolist() == [96, 48, 0]
