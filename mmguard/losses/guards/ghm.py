"""GHMC: weights from a histogram of gradient lengths."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import mark
from mmguard.losses.guards.detection import DetectionGuard, weigh


class GHMGuard(DetectionGuard):
    """What has weight 0 enters neither the histogram nor the number that the loss divides by."""

    serves = ('mmdet.GHMC',)

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return pred.dim() == target.dim()

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        label_weight, *others = args or (kwargs.pop('label_weight'),)
        zeroed = weigh(label_weight, sanitized.keep, pred)
        return self.loss(pred, mark(sanitized, num_classes), zeroed, *others, **kwargs)
