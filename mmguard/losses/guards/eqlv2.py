"""EQLV2Loss: divides by the rows, and adds up the gradients of each class over them (and over the ranks)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mmguard.functional.binary_target import CERTAIN
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import mark
from mmguard.losses.guards.detection import DetectionGuard, all_over_kept


class EQLV2Guard(DetectionGuard):
    """An excluded row becomes a background that was predicted with certainty.

    Its loss and the gradient that is added up are exactly 0. Nothing is deleted, so nothing synchronises, and each
    rank takes part in the reduction.
    """

    serves = ('mmdet.EQLV2Loss',)

    def num_classes(self, pred: Tensor) -> int:
        return pred.shape[1] - 1

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        certain = pred.new_full(pred.shape[1:], -CERTAIN)
        certain[num_classes] = CERTAIN
        pred = torch.where(sanitized.keep.unsqueeze(1), pred, certain)
        return self.loss(pred, mark(sanitized, num_classes), *args, **kwargs) * all_over_kept(sanitized)
