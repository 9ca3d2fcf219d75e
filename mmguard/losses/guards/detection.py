"""What the guards of mmdet's losses share: a background label, no ignored one, weights and factors of the caller."""

from __future__ import annotations

from typing import Optional

import torch
from torch import Tensor

from mmguard.functional.checks import shape_of
from mmguard.functional.reduction import AvgFactor, scale_avg_factor
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import LossGuard, skipped_of


class DetectionGuard(LossGuard):
    """Classes are ``[0, num_classes)``, the label ``num_classes`` is the background, nothing is ignored.

    Where ``GuardedLoss`` is given an ``ignore_index`` of its own, what carries it counts as absent.
    """

    background = True

    @property
    def ignore_index(self) -> Optional[int]:  # type: ignore[override]
        return None


def weigh(weight: Optional[Tensor], keep: Tensor, pred: Tensor) -> Tensor:
    """Weights (N,), (N, C) or flat (N * C,), with zeros where an element takes no part."""
    if weight is None:
        return keep.to(pred.dtype)
    return rows_of(weight, pred).masked_fill(~keep.unsqueeze(1), 0).view(weight.shape)


def rows_of(weight: Tensor, pred: Tensor) -> Tensor:
    """The weights as one row per element."""
    if weight.numel() not in (pred.shape[0], pred.numel()):
        raise ValueError(
            f'weight has shape {shape_of(weight)}, cls_score {shape_of(pred)}: one weight per element is needed, or '
            f'one per element and class'
        )
    return weight.reshape(pred.shape[0], weight.numel() // max(pred.shape[0], 1))


def without_skipped_positives(
    avg_factor: AvgFactor, sanitized: Sanitized, num_classes: int, weight: Optional[Tensor], pred: Tensor
) -> Tensor:
    """A factor whose caller counted positives: labels other than the background. An invalid label was one."""
    counted = ((sanitized.target != num_classes) | sanitized.invalid) & ~sanitized.ignored
    return _scaled(avg_factor, sanitized, counted, weight, pred)


def without_skipped_weights(
    avg_factor: AvgFactor, sanitized: Sanitized, weight: Optional[Tensor], pred: Tensor
) -> Tensor:
    """A factor whose caller counted elements of non-zero weight."""
    return _scaled(avg_factor, sanitized, torch.ones_like(sanitized.keep), weight, pred)


def _scaled(
    avg_factor: AvgFactor, sanitized: Sanitized, counted: Tensor, weight: Optional[Tensor], pred: Tensor
) -> Tensor:
    if weight is not None:
        counted = counted & (rows_of(weight, pred) != 0).any(dim=1)
    return scale_avg_factor(avg_factor, (counted & ~skipped_of(sanitized)).sum(), counted.sum())


def all_over_kept(sanitized: Sanitized) -> Tensor:
    """Turns a mean over all elements, excluded ones at 0, into the mean over the others."""
    kept = sanitized.keep.sum()
    return torch.full_like(kept, sanitized.keep.numel()) / kept.clamp(min=1)
