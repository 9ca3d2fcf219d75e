"""Losses of mmseg with rules of their own: DiceLoss, FocalLoss, and those that select pixels."""

from __future__ import annotations

import pytest
import torch
from loss_cases import assert_equal
from loss_checks import value_and_grad
from mmseg.models.losses import DiceLoss, FocalLoss, LovaszLoss, OhemCrossEntropy
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
