"""Shape propagation: forward and backward under fake tensors, and a real call afterwards."""

from __future__ import annotations

from typing import Any, Callable, Dict

import pytest
import torch
from detection_cases import CASES
from detection_cases import batch as batch_of
from gradients import value_and_grad
from loss_cases import CROSS_ENTROPY, assert_equal, scores_and_labels
from this_torch import skip_where_one_hot_waits
from torch import Tensor
from wrapped_cases import ALL, batch, build

from mmguard.losses.mmseg import GuardedLoss

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
    # Only the real calls were counted.
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
    given = batch_of(case)
    given.label[:5] = 19
    guarded = case.guard()
    with FakeTensorMode(allow_non_fake_inputs=True) as fake_mode:
        leaf = fake_mode.from_tensor(given.scores).requires_grad_()
        guarded(leaf, fake_mode.from_tensor(given.label), avg_factor=4.0).sum().backward()
        assert leaf.grad.shape == leaf.shape
    assert guarded.take_counts() is None


def test_fake_call_between_real_ones_keeps_the_counts() -> None:
    guarded = CROSS_ENTROPY['mmseg'][1](class_weight=[0.5, 1.0, 2.0, 1.0])
    guarded(*arguments('softmax')[:2])
    propagate(lambda: guarded, 'softmax')
    guarded(*arguments('softmax')[:2])
    assert guarded.take_counts().tolist() == [60, 4, 0]
