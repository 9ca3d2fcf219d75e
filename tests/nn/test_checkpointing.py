"""Activation checkpointing runs a forward pass again in the backward pass: that is no second call."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from mmguard.nn import BCEWithLogitsLoss, CrossEntropyLoss

REENTRANT = pytest.mark.parametrize('use_reentrant', [False, True])


class Head(nn.Module):
    """Scores and loss in one, and a step behind the loss that needs a tensor of its own in the backward pass."""

    def __init__(self, criterion: nn.Module) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.criterion = criterion

    def forward(self, features: Tensor, target: Tensor) -> Tensor:
        loss = self.criterion(self.layer(features).sin(), target)
        return (loss * features.mean()).exp()


def one_step(head: Head, features: Tensor, target: Tensor, use_reentrant: bool) -> None:
    loss = checkpoint(head, features.requires_grad_(), target, use_reentrant=use_reentrant)
    loss.backward()


@REENTRANT
def test_class_indices_are_counted_once(use_reentrant: bool) -> None:
    head = Head(CrossEntropyLoss())
    for step in (1, 2):
        one_step(head, torch.randn(4, 5), torch.tensor([0, 7, 2, -1]), use_reentrant)
        assert head.criterion.counts.tolist() == [4 * step, 2 * step, 0]


@REENTRANT
def test_multi_label_targets_are_counted_once(use_reentrant: bool) -> None:
    head = Head(BCEWithLogitsLoss())
    target = F.one_hot(torch.tensor([0, 1, 2, 0]), 3).float()
    target[0, 0] = 255
    one_step(head, torch.randn(4, 5), target, use_reentrant)
    assert head.criterion.counts.tolist() == [12, 1, 0]


def test_the_next_step_on_the_same_labels_counts() -> None:
    head = Head(CrossEntropyLoss())
    features, target = torch.randn(4, 5), torch.tensor([0, 7, 2, -1])
    head(features, target).backward()
    head(features, target).backward()
    assert head.criterion.counts.tolist() == [8, 4, 0]
