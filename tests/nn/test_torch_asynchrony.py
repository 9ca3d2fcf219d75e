"""Nothing waits for the device; compiles without a graph break; fake tensors and ``torch.func`` pass through."""

from __future__ import annotations

import functools
import itertools
from typing import Any, Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from loss_checks import NoWait, value_and_grad
from this_stack import compiles_named_tuples, skip_where_torch_fails
from torch import Tensor
from torch_cases import assert_same

from mmguard.functional import binary_cross_entropy_with_logits, cross_entropy
from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss

FakeTensorMode = pytest.importorskip('torch._subclasses.fake_tensor').FakeTensorMode


LABEL = torch.tensor([[[0, 7, 255], [2, 1, -1]]])
SOFT = torch.tensor([[0.2, 0.3, 0.5], [1, 1, 1], [0, 0, 1], [float('nan'), 0, 0], [0, 1, 0], [0, 0, 0]])
SOFT = SOFT.t().reshape(1, 3, 2, 3)
BINARY = torch.tensor([0.0, 1, 255, 3, float('nan'), 0.5]).repeat(3).view(1, 3, 2, 3)
WEIGHT = torch.tensor([0.5, 1.0, 2.0])


def calls(dtype: torch.dtype) -> Iterator[Callable[..., Tensor]]:
    for on_invalid, reduction, weight, smoothing in itertools.product(
        ('ignore', 'clip'), ('none', 'mean', 'sum'), (None, WEIGHT.to(dtype)), (0.0, 0.1)
    ):
        same = {'reduction': reduction, 'on_invalid': on_invalid}
        more = {**same, 'weight': weight, 'label_smoothing': smoothing}
        for ignore_index in (255, 1):
            yield lambda x, o=dict(more, ignore_index=ignore_index): cross_entropy(x, LABEL, return_tally=True, **o)[0]
            yield lambda x, o=dict(more, ignore_index=ignore_index): cross_entropy(x, LABEL, **o)
        yield lambda x, o=more: cross_entropy(x, SOFT, return_tally=True, **o)[0]
        yield lambda x, o=same: binary_cross_entropy_with_logits(x, BINARY, ignore_index=3, return_tally=True, **o)[0]


@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16], ids=str)
def test_no_wait_in_any_mode(dtype: torch.dtype) -> None:
    number = 0
    for call in calls(dtype):
        leaf = torch.randn(1, 3, 2, 3).to(dtype).requires_grad_()
        with NoWait():
            call(leaf).sum().backward()
        assert leaf.grad.isfinite().all()
        number += 1
    assert number == 144


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    skip_where_torch_fails(lambda: torch.compile(lambda x: x + 1, backend='eager')(torch.ones(1)))
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.usefixtures('fresh_compiler')
@pytest.mark.parametrize('backend', ['eager', 'aot_eager'])
@pytest.mark.parametrize('kind', ['classes', 'smoothed', 'probabilities', 'multilabel'])
def test_full_graph(kind: str, backend: str) -> None:
    def make() -> Any:
        if kind == 'multilabel':
            return BCEWithLogitsLoss(pos_weight=WEIGHT.view(-1, 1, 1))
        return CrossEntropyLoss(WEIGHT, label_smoothing=0.1 if kind == 'smoothed' else 0.0)

    target = {'classes': LABEL, 'smoothed': LABEL, 'probabilities': SOFT, 'multilabel': BINARY}[kind]
    eager, compiled_of = make(), make()
    compiled = torch.compile(compiled_of, fullgraph=compiles_named_tuples(), backend=backend)
    for seed in range(3):
        logits = torch.randn(1, 3, 2, 3, generator=torch.Generator().manual_seed(seed))
        assert_same(value_and_grad(compiled, logits, target), value_and_grad(eager, logits, target))
    assert compiled_of.tally() == eager.tally()
    assert compiled_of.tally().skipped > 0


@pytest.mark.slow
@pytest.mark.usefixtures('fresh_compiler')
def test_full_graph_with_inductor() -> None:
    eager, compiled_of = CrossEntropyLoss(WEIGHT, label_smoothing=0.1), CrossEntropyLoss(WEIGHT, label_smoothing=0.1)
    compiled = torch.compile(compiled_of, fullgraph=compiles_named_tuples())
    for _ in range(2):
        logits = torch.randn(1, 3, 2, 3)
        try:
            actual = value_and_grad(compiled, logits, LABEL)
        except torch._dynamo.exc.BackendCompilerFailed:
            # torch 2.2 compiles no loss of 2-D labels where a decomposition of it was registered before.
            stock = torch.compile(torch.nn.CrossEntropyLoss(WEIGHT, label_smoothing=0.1))
            skip_where_torch_fails(functools.partial(value_and_grad, stock, logits, LABEL.clamp(0, 2)))
            raise
        assert_same(actual, value_and_grad(eager, logits, LABEL), 1e-5)
    assert compiled_of.tally() == eager.tally()


@pytest.mark.parametrize('smoothing', [0.0, 0.1])
@pytest.mark.parametrize('target', [LABEL, SOFT], ids=['classes', 'probabilities'])
def test_fake_tensors(target: Tensor, smoothing: float) -> None:
    criterion = CrossEntropyLoss(label_smoothing=smoothing)
    with FakeTensorMode() as mode:
        leaf = mode.from_tensor(torch.randn(1, 3, 2, 3)).requires_grad_()
        fake = mode.from_tensor(target)
        skip_where_torch_fails(lambda: F.cross_entropy(leaf, fake, label_smoothing=smoothing))
        loss = criterion(leaf, fake)
        loss.backward()
        assert loss.shape == ()
        assert leaf.grad.shape == leaf.shape
    assert criterion.counts is None


@pytest.mark.parametrize('target', [LABEL, SOFT], ids=['classes', 'probabilities'])
def test_meta_tensors(target: Tensor) -> None:
    logits, target = torch.randn(1, 3, 2, 3, device='meta'), target.to('meta')
    skip_where_torch_fails(lambda: F.cross_entropy(logits, target))
    loss = cross_entropy(logits, target)
    assert loss.shape == ()


def test_transforms_of_torch_func() -> None:
    """Per-sample gradients, and forward mode; the module keeps no tensor of a transform."""
    func = pytest.importorskip('torch.func')
    logits, target = torch.randn(6, 3), torch.tensor([0, 7, 2, -1, 1, 1])
    ignored = target.masked_fill((target < 0) | (target > 2), -100)
    skip_where_torch_fails(lambda: func.vmap(F.cross_entropy)(logits, ignored))
    criterion = CrossEntropyLoss()
    per_sample = func.vmap(func.grad(lambda x, y: criterion(x, y)))(logits, target)
    for row, label, grad in zip(logits, target, per_sample):
        torch.testing.assert_close(grad, value_and_grad(cross_entropy, row, label)[1])
    assert criterion.tally().total == 0
    kept = torch.tensor([0, 2, 4, 5])
    _, tangent = func.jvp(lambda x: cross_entropy(x, target), (logits,), (torch.ones_like(logits).cumsum(1),))
    _, expected = func.jvp(
        lambda x: F.cross_entropy(x, target[kept]), (logits[kept],), (torch.ones_like(logits).cumsum(1)[kept],)
    )
    torch.testing.assert_close(tangent, expected)
