"""Invalid elements count as absent: in the loss, in its gradient and in every denominator."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
from batches import STABLE, Batch, batches
from factors import factor_left
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mmguard.functional import mask_cross_entropy, sigmoid_cross_entropy


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
