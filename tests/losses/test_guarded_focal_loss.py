"""FocalLoss takes weights, an avg_factor and dense targets."""

from __future__ import annotations

import pytest
import torch
from gradients import value_and_grad
from loss_cases import assert_equal
from mmseg.models.losses import FocalLoss
from wrapped_cases import batch, one_hot

from mmguard.losses.mmseg import GuardedLoss


@pytest.mark.parametrize('override', [None, 'none', 'sum'])
def test_dense_targets_are_handed_through(override: object) -> None:
    scores, label = batch('focal')
    target = one_hot(label)
    for ignore_index in (255, 1):  # stock leaves out the pixels whose highest target is of that class
        expected = value_and_grad(FocalLoss(), scores, target, reduction_override=override, ignore_index=ignore_index)
        guarded = GuardedLoss(FocalLoss())
        actual = value_and_grad(guarded, scores, target, reduction_override=override, ignore_index=ignore_index)
        assert_equal(actual, expected)
        assert guarded.take_counts() is None


@pytest.mark.parametrize('per_class', [False, True])
def test_weight(per_class: bool) -> None:
    scores, label = batch('focal')
    shape = (label.numel(), 3) if per_class else (label.numel(),)
    weight = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    expected = value_and_grad(FocalLoss(), scores, one_hot(label), weight)
    assert_equal(value_and_grad(GuardedLoss(FocalLoss()), scores, label, weight), expected)
    if not per_class:  # of the shape of the labels, too
        assert_equal(value_and_grad(GuardedLoss(FocalLoss()), scores, label, weight.view(label.shape)), expected)


@pytest.mark.parametrize('as_tensor', [False, True])
def test_avg_factor(as_tensor: bool) -> None:
    scores, label = batch('focal')

    def factor(number: float) -> object:
        return torch.tensor(number) if as_tensor else number

    expected = value_and_grad(FocalLoss(), scores, one_hot(label), avg_factor=factor(30.0))
    assert_equal(value_and_grad(GuardedLoss(FocalLoss()), scores, label, avg_factor=factor(30.0)), expected)
    clipped = value_and_grad(GuardedLoss(FocalLoss(), on_invalid='clip'), scores, label + 2, avg_factor=factor(30.0))
    expected = value_and_grad(FocalLoss(), scores, one_hot((label + 2).clamp(max=2)), avg_factor=factor(30.0))
    assert_equal(clipped, expected)


def test_invalid_elements_leave_an_avg_factor_that_counts_what_is_not_ignored() -> None:
    scores, label = batch('focal', height=1, width=12)
    label[..., :2] = 255
    kept = torch.arange(8)
    expected = value_and_grad(
        FocalLoss(),
        scores[..., kept],
        one_hot(label[..., kept]),
        (label[..., kept] != 255).float().flatten(),
        avg_factor=30 - 8,
        ignore_index=-1,
    )
    label[..., 8:] = 77
    loss, grad = value_and_grad(GuardedLoss(FocalLoss()), scores, label, avg_factor=30)
    assert_equal((loss, grad[..., kept]), expected)


def test_rows_of_scores() -> None:
    scores, label = batch('focal')
    rows, flat = scores.movedim(1, -1).reshape(-1, 3), label.flatten()
    loss, _ = value_and_grad(GuardedLoss(FocalLoss()), scores, label)
    torch.testing.assert_close(value_and_grad(GuardedLoss(FocalLoss()), rows, flat)[0], loss)


def test_one_channel_tells_two_classes_apart() -> None:
    scores = torch.randn(2, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    label = (scores[:, 0] > 0.2).long()
    expected = value_and_grad(FocalLoss(), scores, label.unsqueeze(1).float(), ignore_index=-1)
    assert_equal(value_and_grad(GuardedLoss(FocalLoss()), scores, label), expected)
    label[0] = 2
    loss, grad = value_and_grad(GuardedLoss(FocalLoss()), scores, label)
    assert_equal((loss, grad[1:]), value_and_grad(GuardedLoss(FocalLoss()), scores[1:], label[1:]))
    assert grad[0].eq(0).all()
