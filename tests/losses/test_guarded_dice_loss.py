"""DiceLoss keeps the probabilities of ignored pixels in its denominator; those of invalid ones leave it."""

from __future__ import annotations

import torch
from gradients import value_and_grad
from loss_cases import assert_equal
from mmseg.models.losses import DiceLoss
from wrapped_cases import batch, one_hot

from mmguard.losses.mmseg import GuardedLoss


def test_dense_targets_weights_and_overrides_are_handed_through() -> None:
    scores, label = batch('dice, sigmoid')
    weight = torch.tensor([0.5, 2.0])
    for target in (label, one_hot(label)):
        for options in ({}, {'weight': weight}, {'avg_factor': 3.0}, {'reduction_override': 'sum'}):
            expected = value_and_grad(DiceLoss(), scores, target, **options)
            assert_equal(value_and_grad(GuardedLoss(DiceLoss()), scores, target, **options), expected)


def test_one_channel() -> None:
    scores = torch.randn(2, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    label = (scores[:, 0] > 0.2).long()
    for options in ({}, {'use_sigmoid': False}):
        expected = value_and_grad(DiceLoss(**options), scores, label)
        assert_equal(value_and_grad(GuardedLoss(DiceLoss(**options)), scores, label), expected)


def test_a_channel_that_the_loss_leaves_out() -> None:
    """Its ignore_index names a channel, and the labels of that class are no void pixels."""
    scores, label = batch('dice, sigmoid')
    expected = value_and_grad(DiceLoss(ignore_index=0), scores, label)
    assert_equal(value_and_grad(GuardedLoss(DiceLoss(ignore_index=0)), scores, label), expected)
    assert_equal(value_and_grad(GuardedLoss(DiceLoss(ignore_index=0)), scores, label, ignore_index=255), expected)


def test_no_ignore_index() -> None:
    scores, label = batch('dice, sigmoid')
    label[0, 0] = 255
    expected = value_and_grad(DiceLoss(), scores, label)
    assert_equal(value_and_grad(GuardedLoss(DiceLoss(ignore_index=None)), scores, label), expected)


def test_later_changes_of_the_wrapped_loss_are_seen() -> None:
    scores, label = batch('dice, sigmoid')
    guarded = GuardedLoss(DiceLoss())
    before = guarded(scores, label)
    guarded.loss.loss_weight = 3.0
    torch.testing.assert_close(guarded(scores, label), 3 * before)
