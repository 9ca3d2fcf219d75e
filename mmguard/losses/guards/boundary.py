"""BoundaryLoss: a binary edge map, averaged over all pixels."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mmguard.functional.checks import shape_of
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import LossGuard, mark


class BoundaryGuard(LossGuard):
    serves = ('mmseg.BoundaryLoss',)

    def check(self, pred: Tensor, label: Tensor) -> None:
        if pred.numel() != label.numel() or label.is_floating_point():
            raise ValueError(
                f'BoundaryLoss needs one score and one integer edge label per pixel: label has shape '
                f'{shape_of(label)} ({label.dtype}), cls_score {shape_of(pred)}'
            )

    def num_classes(self, pred: Tensor) -> int:
        return 2

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        # The loss gives weight to 0 and 1 alone, but divides by every pixel.
        loss = self.loss(pred, mark(sanitized, self.ignore_index), *args, **kwargs)
        seen, skipped, _ = sanitized.counts.unbind()
        return loss * (seen / (seen - skipped).clamp(min=1))
