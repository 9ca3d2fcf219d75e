"""LovaszLoss of mmdet3d, around which a guard stands: points of shape (P, C)."""

from __future__ import annotations

import pytest
import torch
from mmdet3d.models.losses import LovaszLoss

from mmguard.losses import GuardedLoss

IGNORED = 19


def pair(labels: torch.Tensor, scores: torch.Tensor, guarded: bool) -> tuple:
    scores = scores.clone().requires_grad_()
    stock = LovaszLoss(loss_weight=1.0, reduction='none')
    loss = (GuardedLoss(stock) if guarded else stock)(scores, labels, ignore_index=IGNORED)
    loss.sum().backward()
    return loss.sum().detach(), scores.grad


@pytest.mark.parametrize('labels', [[0, 3, 3, 1, 19, 19], [2, 2, 2, 2, 2, 2], [0, 19, 19, 19, 5, 7]])
def test_valid_labels_give_the_loss_and_gradient_of_stock(labels: list) -> None:
    scores = torch.randn(6, 20, generator=torch.Generator().manual_seed(0))
    stock, guarded = (pair(torch.tensor(labels), scores, which) for which in (False, True))
    torch.testing.assert_close(guarded, stock)


@pytest.mark.parametrize('invalid', [20, 300, -1])
def test_an_invalid_label_counts_as_deleted(invalid: int) -> None:
    scores = torch.randn(7, 20, generator=torch.Generator().manual_seed(1))
    labels = torch.tensor([0, 3, invalid, 1, 19, 3, 5])
    keep = labels != invalid
    loss, grad = pair(labels, scores, True)
    expected, of_kept = pair(labels[keep], scores[keep], False)
    torch.testing.assert_close((loss, grad[keep]), (expected, of_kept))
    assert not grad[~keep].any()


@pytest.mark.parametrize('labels', [[300, 19, 300], [300, 4, 19]])
def test_none_or_one_point_that_is_left(labels: list) -> None:
    loss, grad = pair(torch.tensor(labels), torch.randn(3, 20), True)
    assert torch.isfinite(loss)
    assert torch.isfinite(grad).all()
    assert bool(grad.any()) is (4 in labels)
