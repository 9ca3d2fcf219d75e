"""Losses that select pixels, and fail or give NaN where none or one is left."""

from __future__ import annotations

import pytest
import torch
from gradients import value_and_grad
from loss_cases import assert_equal
from mmseg.models.losses import LovaszLoss, OhemCrossEntropy
from wrapped_cases import batch

from mmguard.losses.mmseg import GuardedLoss


def test_ohem_keeps_its_constant_on_the_graph() -> None:
    """F6: stock returns a number without a graph, and DDP waits for gradients that never come."""
    scores, label = batch('ohem')
    scores.requires_grad_()
    assert not OhemCrossEntropy()(scores, label.fill_(255)).requires_grad
    loss = GuardedLoss(OhemCrossEntropy())(scores, label)
    assert loss.requires_grad
    loss.backward()
    assert scores.grad.eq(0).all()


def test_ohem_with_easy_pixels_alone() -> None:
    """Nothing is below the threshold: stock's mean is NaN."""
    label = torch.zeros(1, 1, 2, dtype=torch.long)
    scores = torch.zeros(1, 3, 1, 2)
    scores[:, 0] = 50
    assert OhemCrossEntropy()(scores, label).isnan()
    loss, grad = value_and_grad(GuardedLoss(OhemCrossEntropy()), scores, label)
    assert loss == 0
    assert grad.eq(0).all()


@pytest.mark.parametrize('odd', [float('nan'), float('inf')])
def test_ohem_does_not_hide_scores_that_are_not_finite(odd: float) -> None:
    scores, label = batch('ohem')
    scores[0, 0, 0, 0] = odd
    assert GuardedLoss(OhemCrossEntropy())(scores.requires_grad_(), label).isnan()


def test_ohem_with_another_ignore_label() -> None:
    scores, label = batch('ohem')
    for own in (7, 0):
        marked = label.clone()
        marked[0, 0] = own
        expected = value_and_grad(OhemCrossEntropy(ignore_label=own), scores, marked)
        assert_equal(value_and_grad(GuardedLoss(OhemCrossEntropy(ignore_label=own)), scores, marked), expected)
        marked = torch.where(marked == own, 255, marked)
        guarded = GuardedLoss(OhemCrossEntropy(ignore_label=own))
        assert_equal(value_and_grad(guarded, scores, marked, ignore_index=255), expected)


def test_an_unknown_keyword_with_a_value_is_not_swallowed() -> None:
    scores, label = batch('ohem')
    guarded = GuardedLoss(OhemCrossEntropy())
    guarded(scores, label, weight=None, avg_factor=None)
    with pytest.raises(TypeError, match='weight'):
        guarded(scores, label, weight=torch.ones(label.shape))


@pytest.mark.parametrize('reduction', ['mean', 'sum', 'none'])
def test_binary_lovasz_counts_an_image_without_pixels_as_stock_does(reduction: str) -> None:
    loss = LovaszLoss(loss_type='binary', per_image=True, reduction=reduction)
    scores, label = batch('lovasz, binary', images=3)
    label[1] = 255
    expected = value_and_grad(loss, scores, label)
    assert_equal(value_and_grad(GuardedLoss(loss), scores, label), expected)
    label[1] = 9
    assert_equal(value_and_grad(GuardedLoss(loss), scores, label), expected)


def test_lovasz_leaves_out_an_image_without_pixels_where_stock_fails() -> None:
    loss = LovaszLoss(per_image=True)
    scores, label = batch('lovasz', images=3)
    expected = value_and_grad(loss, scores[[0, 2]], label[[0, 2]])
    label[1] = 255
    with pytest.raises(RuntimeError):
        loss(scores, label)
    value, grad = value_and_grad(GuardedLoss(loss), scores, label)
    assert_equal((value, grad[[0, 2]]), expected)


@pytest.mark.parametrize('per_image', [False, True])
def test_lovasz_of_one_pixel_is_what_its_formula_gives(per_image: bool) -> None:
    """1 - p of the one class that is present; stock fails on the squeezed index."""
    loss = LovaszLoss(per_image=per_image, reduction='mean' if per_image else 'none')
    scores, label = batch('lovasz', images=1)
    label.fill_(255)[0, 2, 3] = 1
    value, grad = value_and_grad(GuardedLoss(loss), scores, label)
    leaf = scores.clone().requires_grad_()
    expected = 1 - leaf.softmax(1)[0, 1, 2, 3]
    expected.backward()
    assert_equal((value, grad), (expected.detach(), leaf.grad))
