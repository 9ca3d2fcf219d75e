"""Scores that are NaN or infinite: at an invalid label they reach nothing, at a valid one they stay."""

from __future__ import annotations

import pytest
import torch
from gradients import value_and_grad
from torch import Tensor
from wrapped_cases import ALL, FOCAL, batch, build, one_hot

from mmguard.losses.mmdet import GuardedCrossEntropyLoss as MMDetCrossEntropy
from mmguard.losses.mmseg import GuardedCrossEntropyLoss, GuardedLoss

ODD = pytest.mark.parametrize('odd', [float('nan'), float('inf'), -float('inf')])


def spoilt(scores: Tensor, where: Tensor, odd: float) -> Tensor:
    return scores.movedim(1, -1).masked_fill(where.unsqueeze(-1), odd).movedim(-1, 1)


@ODD
@pytest.mark.parametrize('name', ALL)
def test_at_invalid_labels_of_a_wrapped_loss(name: str, odd: float) -> None:
    scores, label = batch(name)
    invalid = torch.rand(label.shape) < 0.3
    label = label.masked_fill(invalid, 77)
    loss = GuardedLoss(build(name))
    value, grad = value_and_grad(loss, spoilt(scores, invalid, odd), label)
    assert spoilt(grad, ~invalid, 0.0).eq(0).all()
    expected, expected_grad = value_and_grad(loss, scores, label)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grad, expected_grad)


@pytest.mark.parametrize('name', ALL)
def test_at_valid_labels_a_wrapped_loss_shows_them(name: str) -> None:
    scores, label = batch(name)
    scores[0, :, 1, 2] = float('nan')
    _, grad = value_and_grad(GuardedLoss(build(name)), scores, label)
    _, stock = value_and_grad(build(name), scores, one_hot(label) if name in FOCAL else label)
    assert stock.isnan().any() or 'binary' in name  # the hinge of NaN has no gradient
    assert grad.isnan().equal(stock.isnan())


@ODD
@pytest.mark.parametrize('loss', [GuardedCrossEntropyLoss, MMDetCrossEntropy])
@pytest.mark.parametrize('weight', [None, [0.5, 1.0, 2.0]])
def test_at_invalid_labels_of_sigmoid_cross_entropy(loss: type, weight: object, odd: float) -> None:
    scores, label = batch('ohem')
    invalid = torch.rand(label.shape) < 0.3
    label = label.masked_fill(invalid, 77)
    for target in (label, one_hot(label).masked_fill(invalid.unsqueeze(1), 77.0)):
        criterion = loss(use_sigmoid=True, class_weight=weight)
        value, grad = value_and_grad(criterion, spoilt(scores, invalid, odd), target)
        assert spoilt(grad, ~invalid, 0.0).eq(0).all()
        torch.testing.assert_close((value, grad), value_and_grad(criterion, scores, target))
        shown = value_and_grad(criterion, spoilt(scores, ~invalid, float('nan')), target)
        assert shown[0].isnan()
        assert spoilt(shown[1], invalid, float('nan')).isnan().all()


@ODD
def test_at_invalid_instances_of_masks(odd: float) -> None:
    scores, label = torch.randn(4, 3, 5, 6), torch.tensor([0, 80, 2, -1])
    masks = torch.randint(0, 2, (4, 5, 6)).float()
    invalid = torch.tensor([False, True, False, True])
    criterion = MMDetCrossEntropy(use_mask=True)
    expected = value_and_grad(criterion, scores, masks, label)
    scores[invalid], masks[invalid] = odd, float('nan')
    actual = value_and_grad(criterion, scores, masks, label)
    torch.testing.assert_close(actual, expected)


@ODD
def test_at_rows_that_are_no_distribution(odd: float) -> None:
    scores, target = torch.randn(4, 3), torch.tensor([[0.2, 0.3, 0.5], [1, 1, 1], [0, 0, 1], [float('nan'), 0, 0]])
    invalid = torch.tensor([False, True, False, True])
    criterion = GuardedCrossEntropyLoss(use_soft=True)
    expected = value_and_grad(criterion, scores, target)
    torch.testing.assert_close(value_and_grad(criterion, spoilt(scores, invalid, odd), target), expected)
