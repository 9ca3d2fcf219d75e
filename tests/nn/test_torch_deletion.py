"""Invalid elements count as absent: in the loss, in its gradient and in every denominator. Nothing left gives 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

import pytest
import torch
import torch.nn.functional as F
from gradients import value_and_grad
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch_cases import STABLE

from mmguard.functional import binary_cross_entropy_with_logits, cross_entropy

NAN, INF = float('nan'), float('inf')


@dataclass
class Batch:
    """One row of logits per element; run as (N, C), or as a map (1, C, 1, N)."""

    logits: Tensor
    target: Tensor
    options: Dict[str, Any]
    as_map: bool

    def run(self, loss: Any, keep: Tensor, **more: Any) -> Tuple[Tensor, Tensor]:
        logits, target = self.logits[keep], self.target[keep]
        if self.as_map:
            logits = logits.t()[None, :, None]
            target = target[None, None] if target.dim() == 1 else target.t()[None, :, None]
        value, grad = value_and_grad(loss, logits, target, **self.options, **more)
        if value.dim() > 0:
            value = value.flatten()
        return value, grad[0, :, 0].t() if self.as_map else grad


def drawn_options(draw: st.DrawFn, classes: int, generator: torch.Generator) -> Dict[str, Any]:
    # With reduction 'none' value_and_grad multiplies by place, which deleting changes: the sum says as much.
    weighted = draw(st.booleans())
    return {
        'weight': torch.rand(classes, generator=generator, dtype=torch.float64) + 0.2 if weighted else None,
        'reduction': draw(st.sampled_from(('mean', 'sum'))),
        'label_smoothing': draw(st.sampled_from((0.0, 0.1, 1.0))),
    }


@st.composite
def class_batches(draw: st.DrawFn) -> Batch:
    classes = draw(st.integers(1, 5))
    ignore_index = draw(st.sampled_from((-100, 255, -1, 0, classes - 1)))
    odd = st.sampled_from((classes, classes + 1, 255, -1, -100, 2**40, -(2**40), ignore_index))
    target = draw(st.lists(st.integers(0, classes - 1) | odd, min_size=1, max_size=9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    return Batch(
        logits=3 * torch.randn(len(target), classes, generator=generator, dtype=torch.float64),
        target=torch.tensor(target, dtype=torch.int64),
        options={**drawn_options(draw, classes, generator), 'ignore_index': ignore_index},
        as_map=draw(st.booleans()),
    )


ROWS: List[List[float]] = [
    [0.2, 0.3, 0.5], [0, 1, 0], [0.4, 0.4, 0.24], [0, 0, 0], [1, 1, 0], [NAN, 0.5, 0.5], [INF, 0, 0],
    [-0.5, 1, 0.5], [255, 255, 255], [0.2, 0.2, 0.2],
]  # fmt: skip
SOUND = 3


@st.composite
def soft_batches(draw: st.DrawFn) -> Tuple[Batch, Tensor]:
    chosen = draw(st.lists(st.integers(0, len(ROWS) - 1), min_size=1, max_size=9))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 999)))
    batch = Batch(
        logits=3 * torch.randn(len(chosen), 3, generator=generator, dtype=torch.float64),
        target=torch.tensor([ROWS[i] for i in chosen], dtype=torch.float64),
        options=drawn_options(draw, 3, generator),
        as_map=draw(st.booleans()),
    )
    return batch, torch.tensor([i < SOUND for i in chosen])


def assert_deleted(batch: Batch, valid: Tensor, takes_part: Tensor) -> None:
    """Beside the same loss without them, and beside PyTorch's of what is left."""
    everything = torch.ones_like(valid)
    loss, grad = batch.run(cross_entropy, everything)
    rest, rest_grad = batch.run(cross_entropy, valid)
    torch.testing.assert_close(loss, rest)
    torch.testing.assert_close(grad[valid], rest_grad)
    assert grad[~valid].eq(0).all()
    if takes_part.any():
        expected, expected_grad = batch.run(F.cross_entropy, valid)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(grad[valid], expected_grad)
    else:
        assert loss == 0
        assert grad.eq(0).all()


@STABLE
@given(class_batches())
def test_class_indices(batch: Batch) -> None:
    classes, ignore_index = batch.logits.shape[1], batch.options['ignore_index']
    inside = (batch.target >= 0) & (batch.target < classes)
    valid = inside | (batch.target == ignore_index)
    assert_deleted(batch, valid, inside & (batch.target != ignore_index))
    _, counts = cross_entropy(batch.logits, batch.target, **batch.options, return_tally=True)
    assert counts.tolist() == [valid.numel(), int((~valid).sum()), 0]


@STABLE
@given(soft_batches())
def test_probabilities(drawn: Tuple[Batch, Tensor]) -> None:
    batch, valid = drawn
    assert_deleted(batch, valid, valid)
    _, counts = cross_entropy(batch.logits, batch.target, **batch.options, return_tally=True)
    assert counts.tolist() == [valid.numel(), int((~valid).sum()), 0]


@STABLE
@given(
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 255.0, -0.1, 1.5, -1.0, NAN, INF]), max_size=8),
    st.sampled_from([None, -1, 255, NAN]),
    st.sampled_from(['mean', 'sum']),
    st.booleans(),
)
def test_multilabel(values: List[float], ignore_index: Optional[float], reduction: str, weighted: bool) -> None:
    def is_ignored(value: float) -> bool:
        if ignore_index is None:
            return False
        return math.isnan(value) if math.isnan(ignore_index) else value == ignore_index

    target = torch.tensor(values, dtype=torch.float64)
    keep = torch.tensor([0 <= value <= 1 and not is_ignored(value) for value in values], dtype=torch.bool)
    logits = torch.randn(len(values), generator=torch.Generator().manual_seed(len(values)), dtype=torch.float64)
    weight = torch.arange(1.0, len(values) + 1, dtype=torch.float64) if weighted else None
    options = {'reduction': reduction, 'ignore_index': ignore_index}
    loss, grad = value_and_grad(binary_cross_entropy_with_logits, logits, target, weight, **options)
    assert grad[~keep].eq(0).all()
    _, counts = binary_cross_entropy_with_logits(logits, target, weight, **options, return_tally=True)
    skipped = sum(not (0 <= value <= 1 or is_ignored(value)) for value in values)
    assert counts.tolist() == [len(values), skipped, 0]
    if keep.any():
        rest = (logits[keep], target[keep], None if weight is None else weight[keep])
        expected, expected_grad = value_and_grad(F.binary_cross_entropy_with_logits, *rest, reduction=reduction)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(grad[keep], expected_grad)
    else:
        assert loss == 0


@pytest.mark.parametrize('shape', [(4,), (6, 4), (0, 4), (2, 4, 3, 5), (2, 4, 0, 5)], ids=str)
@pytest.mark.parametrize('value', [-100, 4, -1, 2**40])
@pytest.mark.parametrize('label_smoothing', [0.0, 0.1])
@pytest.mark.parametrize('dtype', [torch.float32, torch.bfloat16], ids=str)
def test_nothing_to_train_on(shape: tuple, value: int, label_smoothing: float, dtype: torch.dtype) -> None:
    """Where PyTorch's mean is NaN."""
    logits = torch.randn(shape).to(dtype)
    target = torch.full(() if len(shape) == 1 else (shape[0], *shape[2:]), value)
    for weight in (None, torch.ones(4, dtype=dtype)):
        options = {'weight': weight, 'label_smoothing': label_smoothing}
        for reduction in ('none', 'mean', 'sum'):
            loss, grad = value_and_grad(cross_entropy, logits, target, reduction=reduction, **options)
            assert loss.eq(0).all()
            assert grad.eq(0).all()
        if value == -100:
            assert F.cross_entropy(logits, target, **options).isnan()


def test_weights_that_add_up_to_nothing() -> None:
    logits, target = torch.randn(5, 3), torch.ones(5, dtype=torch.long)
    weight = torch.tensor([1.0, 0.0, 1.0])
    for label_smoothing in (0.0, 0.1):
        loss, grad = value_and_grad(cross_entropy, logits, target, weight, label_smoothing=label_smoothing)
        assert loss == 0
        assert grad.eq(0).all()


def test_a_class_that_is_masked_out_does_not_leak_from_excluded_elements() -> None:
    logits = torch.tensor([[0.0, -INF, 1.0], [0.0, 1.0, 2.0]])
    loss, grad = value_and_grad(cross_entropy, logits, torch.tensor([7, 2]))
    assert loss.isfinite()
    assert grad.isfinite().all()
    assert grad[0].eq(0).all()


def test_clip_of_class_indices() -> None:
    logits, target = torch.randn(6, 3), torch.tensor([0, 7, -4, 255, 2, 1])
    for ignore_index, clamped in ((255, [0, 2, 0, 255, 2, 1]), (2, [0, 2, 0, 2, 2, 1])):
        options = {'ignore_index': ignore_index}
        actual = value_and_grad(cross_entropy, logits, target, on_invalid='clip', **options)
        expected = value_and_grad(F.cross_entropy, logits, torch.tensor(clamped), **options)
        torch.testing.assert_close(actual, expected)
        _, counts = cross_entropy(logits, target, on_invalid='clip', return_tally=True, **options)
        assert counts.tolist() == [6, 0, 2 if ignore_index == 255 else 3]


def test_clip_of_probabilities() -> None:
    """Negative parts become 0, the row is divided by its sum; a row of nothing stays out."""
    logits = torch.randn(5, 3)
    target = torch.tensor([[0.2, 0.3, 0.5], [1, 1, 0], [-1, 3, 0], [NAN, 0.5, 0.5], [0, 0, 0]])
    sanitized = torch.tensor([[0.2, 0.3, 0.5], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5]])
    loss, counts = cross_entropy(logits, target, on_invalid='clip', return_tally=True)
    torch.testing.assert_close(loss, F.cross_entropy(logits[:4], sanitized))
    assert counts.tolist() == [5, 1, 3]


def test_clip_of_multilabel() -> None:
    logits, target = torch.randn(5), torch.tensor([0.0, 1.5, -2.0, 0.5, -1.0])
    loss, counts = binary_cross_entropy_with_logits(
        logits, target, ignore_index=-1, on_invalid='clip', return_tally=True
    )
    expected = F.binary_cross_entropy_with_logits(logits[:4], torch.tensor([0.0, 1.0, 0.0, 0.5]))
    torch.testing.assert_close(loss, expected)
    assert counts.tolist() == [5, 0, 2]


@pytest.mark.parametrize('dtype', [torch.float16, torch.bfloat16, torch.float32], ids=str)
def test_probabilities_that_were_rounded_are_valid(dtype: torch.dtype) -> None:
    """1,000 classes in half precision do not add up to 1 exactly; nor does a smoothing by C instead of C - 1."""
    target = torch.randn(64, 1000, generator=torch.Generator().manual_seed(0)).softmax(1).to(dtype)
    smoothed = F.one_hot(torch.arange(8) % 2, 2).to(dtype) * 0.9 + (1 - F.one_hot(torch.arange(8) % 2, 2)) * 0.05
    for rows in (target, smoothed.to(dtype)):
        _, counts = cross_entropy(torch.zeros(rows.shape), rows, return_tally=True)
        assert counts.tolist() == [len(rows), 0, 0]
