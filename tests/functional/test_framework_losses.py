"""Losses by the rules of the frameworks: cross entropy, half precision, deletion, and an explicit ``avg_factor``."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple, Union

import pytest
import torch
import torch.nn.functional as F
from batches import STABLE, Batch, batches
from hypothesis import assume, given
from hypothesis import strategies as st
from loss_checks import factor_left
from this_stack import skip_without_half_precision
from torch import Tensor

from mmguard.functional import (
    binary_cross_entropy_with_logits,
    check_target,
    cross_entropy,
    mask_cross_entropy,
    scale_avg_factor,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
)
from mmguard.functional.compute import EPS
from mmguard.labels.tally import LabelGuardError, Tally

HALF = (torch.float16, torch.bfloat16)


def inputs(dtype: torch.dtype) -> Tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(1, 3, 40, 50, generator=generator).to(dtype)
    label = torch.randint(0, 3, (1, 40, 50), generator=generator)
    label[0, :5] = 255
    label[0, 5:9] = 19
    return scores, label


def run(function: Any, scores: Tensor, *args: Any, **kwargs: Any) -> Tuple[Tensor, Tensor]:
    leaf = scores.clone().requires_grad_()
    loss, _ = function(leaf, *args, **kwargs)
    loss.backward()
    return loss.detach(), leaf.grad


@pytest.mark.parametrize('dtype', HALF)
@pytest.mark.parametrize('avg_non_ignore', [False, True])
@pytest.mark.parametrize('function', [softmax_cross_entropy, sigmoid_cross_entropy])
def test_no_overflow(function: Any, avg_non_ignore: bool, dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    scores, label = inputs(dtype)
    # Summed, these exceed 65504, the largest float16.
    options = {'class_weight': torch.tensor([60.0, 90.0, 75.0]), 'ignore_index': 255, 'avg_non_ignore': avg_non_ignore}
    loss, grad = run(function, scores, label, **options)
    expected, expected_grad = run(function, scores.float(), label, **options)
    assert loss.dtype == torch.float32
    assert grad.dtype == dtype
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(loss, expected, rtol=4 * eps, atol=0)
    torch.testing.assert_close(grad.float(), expected_grad, rtol=8 * eps, atol=1e-4)


@pytest.mark.parametrize('dtype', HALF)
def test_class_weights_are_not_rounded_or_infinite(dtype: torch.dtype) -> None:
    """One class alone: its weight cancels, if it is the same above and below the fraction line."""
    skip_without_half_precision(dtype)
    scores = torch.zeros(4, 2, dtype=dtype)
    one = softmax_cross_entropy(scores, torch.ones(4, dtype=torch.long))[0]
    for weight in (1.00390625, 0.3331, 1e6, 1e-9):
        element = softmax_cross_entropy(
            scores, torch.ones(4, dtype=torch.long), class_weight=torch.tensor([1.0, weight]), reduction='none'
        )[0]
        torch.testing.assert_close(element[0].float(), one * weight, rtol=1e-6, atol=0)
    loss = softmax_cross_entropy(scores, torch.ones(4, dtype=torch.long), class_weight=torch.tensor([1.0, 1e6]))[0]
    torch.testing.assert_close(loss, one, rtol=1e-6, atol=0)


@pytest.mark.parametrize('dtype', HALF)
def test_masks(dtype: torch.dtype) -> None:
    skip_without_half_precision(dtype)
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 2, 28, 28, generator=generator).to(dtype)
    target = (torch.rand(3, 28, 28, generator=generator) > 0.5).float()
    label, options = torch.tensor([0, 9, 1]), {'class_weight': torch.tensor([50.0, 90.0])}
    loss, grad = run(mask_cross_entropy, scores, target, label, **options)
    expected, _ = run(mask_cross_entropy, scores.float(), target, label, **options)
    torch.testing.assert_close(loss, expected, rtol=4 * torch.finfo(dtype).eps, atol=0)
    assert grad.isfinite().all()


def test_double_precision_stays() -> None:
    scores, label = inputs(torch.float64)
    for function in (softmax_cross_entropy, sigmoid_cross_entropy):
        loss, _ = run(function, scores, label, class_weight=torch.ones(3), ignore_index=255)
        assert loss.dtype == torch.float64


def assert_deleted(batch: Batch, whole: Tuple[Tensor, Tensor, object], rest: Tuple[Tensor, Tensor, object]) -> None:
    invalid = batch.invalid
    loss, grad, _ = whole
    if batch.reduction == 'none':
        assert loss[invalid].eq(0).all()
        loss = loss[~invalid]
    torch.testing.assert_close(loss, rest[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grad[~invalid], rest[1], rtol=1e-5, atol=1e-5)
    assert grad[invalid].eq(0).all()


@STABLE
@given(batches())
def test_invalid_elements_might_as_well_not_be_there(batch: Batch) -> None:
    rest = batch.only(~batch.invalid)
    assert_deleted(batch, batch.run(), rest.run())


@STABLE
@given(batches(reduction='mean'), st.booleans())
def test_with_an_avg_factor_that_the_caller_counted(batch: Batch, as_tensor: bool) -> None:
    rest = batch.only(~batch.invalid)
    factors = [b.counted_by_caller() for b in (batch, rest)]
    whole, kept = (torch.tensor(factor) if as_tensor else factor for factor in factors)
    assert_deleted(batch, batch.run(avg_factor=whole), rest.run(avg_factor=kept))


@STABLE
@given(batches(reduction='none'))
def test_an_avg_factor_changes_no_element_wise_loss(batch: Batch) -> None:
    assert_deleted(batch, batch.run(avg_factor=3.0), batch.only(~batch.invalid).run())


@STABLE
@given(
    st.lists(st.sampled_from([0.0, 0.3, 1.0, 255.0, -0.1, 1.5, float('nan'), float('inf')]), max_size=8),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, 4.0]),
)
def test_dense_targets(values: list, weighted: bool, avg_non_ignore: bool, avg_factor: Optional[float]) -> None:
    target = torch.tensor(values)
    kept = torch.tensor([0 <= value <= 1 or value == 255 for value in values], dtype=torch.bool)
    generator = torch.Generator().manual_seed(len(values))
    scores = torch.randn(len(values), generator=generator)
    weight = torch.rand(len(values), generator=generator) + 0.1 if weighted else None

    def run(keep: Tensor, factor: object) -> Tuple[Tensor, Tensor]:
        leaf = scores[keep].requires_grad_()
        loss, counts = sigmoid_cross_entropy(
            leaf,
            target[keep],
            None if weight is None else weight[keep],
            ignore_index=255,
            avg_non_ignore=avg_non_ignore,
            avg_factor=factor,
        )
        loss.backward()
        assert counts.tolist() == [int(keep.sum()), int((keep & ~kept).sum()), 0]
        return loss.detach(), leaf.grad

    loss, grad = run(torch.ones_like(kept), avg_factor)
    left = None if avg_factor is None else factor_left(avg_factor, int(kept.sum()), len(values))
    expected, expected_grad = run(kept, left)
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(grad[kept], expected_grad, rtol=1e-5, atol=1e-5)
    assert grad[~kept].eq(0).all()


@STABLE
@given(st.lists(st.sampled_from([0, 1, 2, 3, -1, 80, 2**40]), max_size=6), st.booleans())
def test_instance_masks(values: list, weighted: bool) -> None:
    label = torch.tensor(values, dtype=torch.int64)
    kept = (label >= 0) & (label < 3)
    generator = torch.Generator().manual_seed(len(values))
    scores = torch.randn(len(values), 3, 2, 4, generator=generator)
    target = (torch.rand(len(values), 2, 4, generator=generator) > 0.5).float()
    class_weight = torch.tensor([0.5, 2.0, 1.0]) if weighted else None
    outcomes = []
    for keep in (torch.ones_like(kept), kept):
        leaf = scores[keep].requires_grad_()
        loss, counts = mask_cross_entropy(leaf, target[keep], label[keep], class_weight=class_weight)
        loss.backward()
        assert counts.tolist() == [int(keep.sum()), int((keep & ~kept).sum()), 0]
        outcomes.append((loss.detach(), leaf.grad))
    (loss, grad), (expected, expected_grad) = outcomes
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(grad[kept], expected_grad)
    assert grad[~kept].eq(0).all()


@STABLE
@given(batches(reduction='mean'), st.sampled_from([0.0, 0.25, 1.0, 2.5, 3.0, 40.0]), st.booleans())
def test_the_rule(batch: Batch, avg_factor: float, as_tensor: bool) -> None:
    counted = torch.ones(len(batch.label), dtype=torch.bool) if batch.weight is None else batch.weight != 0
    number, kept = int(counted.sum()), int((counted & ~batch.invalid).sum())
    expected = factor_left(avg_factor, kept, number)
    assume(expected > 0 or kept == 0)  # stock divides what is there by eps, too
    total = Batch(**dict(batch.__dict__, reduction='sum')).run()[0]
    loss = batch.run(torch.tensor(avg_factor) if as_tensor else avg_factor)[0]
    torch.testing.assert_close(loss, total / (expected + EPS), rtol=1e-5, atol=1e-5)


@STABLE
@given(batches(reduction='mean'), st.sampled_from([0.5, 2.5]))
def test_clipped_elements_stay_counted(batch: Batch, avg_factor: float) -> None:
    total = Batch(**dict(batch.__dict__, reduction='sum')).run(on_invalid='clip')[0]
    loss = batch.run(avg_factor, on_invalid='clip')[0]
    torch.testing.assert_close(loss, total / (avg_factor + EPS), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize('avg_factor', [3, 3.0, torch.tensor(3), torch.tensor(3.0), torch.tensor(3, dtype=torch.half)])
def test_unchanged_without_invalid_elements(avg_factor: Union[float, torch.Tensor]) -> None:
    assert scale_avg_factor(avg_factor, torch.tensor(7), torch.tensor(7)).item() == 3
    assert scale_avg_factor(avg_factor, torch.tensor(0), torch.tensor(0)).item() == 3


def test_examples_worked_out_by_hand() -> None:
    """Every element has the loss log 3, log 2 per channel."""
    scores, label = torch.zeros(4, 3), torch.tensor([0, 1, 255, 7])
    for avg_non_ignore, kept in ((True, 2), (False, 3)):
        loss, counts = softmax_cross_entropy(scores, label, ignore_index=255, avg_non_ignore=avg_non_ignore)
        assert loss.item() == pytest.approx(2 * math.log(3) / kept)
        assert counts.tolist() == [4, 1, 0]
    factor = scale_avg_factor(100, torch.tensor(1), torch.tensor(4))
    assert (factor.item(), factor.dtype) == (97, torch.float32)
    maps, weight = torch.zeros(1, 2, 1, 4), torch.tensor([1.0, 2, 3, 4])
    of_maps = [
        sigmoid_cross_entropy(maps, label.clamp(max=1)[None, None], one)[0].item()
        for one in (weight.reshape(1, 1, 4), weight.reshape(1, 1, 1, 4))
    ]
    assert of_maps == pytest.approx([10 * math.log(2) / 4] * 2)
    one = cross_entropy(torch.zeros(3), torch.tensor(1))
    assert one.item() == pytest.approx(math.log(3))
    loss = binary_cross_entropy_with_logits(torch.zeros(2), torch.tensor([0.0, 255]).double())
    assert (loss.item(), loss.dtype) == (pytest.approx(math.log(2)), torch.float64)
    with pytest.raises(LabelGuardError) as caught:
        binary_cross_entropy_with_logits(torch.zeros(3), torch.tensor([0.0, 255, 7]), on_invalid='raise')
    assert caught.value.tallies == [Tally(3, 2)]
    with pytest.raises(LabelGuardError) as caught:
        check_target(scores, torch.tensor([0, 1, 2, 7]))
    assert caught.value.tallies == [Tally(4, 1, values={7: 1})]
    # A factor of the elements that weigh anything: the invalid one weighs nothing, so it was not counted.
    loss, _ = softmax_cross_entropy(scores, label, torch.tensor([1.0, 2, 1, 0]), ignore_index=255, avg_factor=40)
    assert loss.item() == pytest.approx(3 * math.log(3) / 40)


@pytest.mark.parametrize(
    'part', [(..., 4), (..., slice(5, 85)), (..., slice(0, 2))], ids=['column', 'classes', 'offsets']
)
def test_slices_of_scores_have_the_gradient_of_stock_bit_for_bit(part: Any) -> None:
    draw = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 507, 85, generator=draw)
    target = torch.rand(scores[part].shape, generator=draw)
    ours, stock = (scores.clone().requires_grad_() for _ in range(2))
    loss, _ = sigmoid_cross_entropy(ours[part], target, reduction='sum')
    expected = F.binary_cross_entropy_with_logits(stock[part], target, reduction='none').sum()
    loss.backward()
    expected.backward()
    assert torch.equal(loss, expected)
    assert torch.equal(ours.grad, stock.grad)
