"""A guarded loss, once forward and backward: what is installed may go together and mmguard still not work there."""

from __future__ import annotations

import sys
from typing import List

import torch
from torch import nn
from torch.nn import functional as F

from mmguard.nn import CrossEntropyLoss


def train() -> None:
    """Trains on an invalid label among valid ones, in plain PyTorch and, where mmengine is imported, by its loss.

    Raises:
        ArithmeticError: The loss or its gradient is not that of the valid labels.
        Exception: Whatever the loss itself raises.
    """
    losses: List[nn.Module] = [CrossEntropyLoss()]
    if 'mmengine' in sys.modules:
        from mmguard.losses import GuardedCrossEntropyLoss

        losses.append(GuardedCrossEntropyLoss())
    labels = torch.tensor([0, 7, 2])
    scores = torch.tensor([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.5, 0.0, 0.0]], requires_grad=True)
    kept = labels < 3
    expected = F.cross_entropy(scores[kept], labels[kept])
    (expected_grad,) = torch.autograd.grad(expected, scores)
    for module in losses:
        loss = module(scores, labels)
        (grad,) = torch.autograd.grad(loss, scores)
        if not (torch.allclose(loss, expected) and torch.allclose(grad, expected_grad)):
            raise ArithmeticError(f'{type(module).__name__} gives {loss.item():g} where PyTorch gives {expected:g}')
