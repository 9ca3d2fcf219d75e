"""LovaszLoss: a sort over the pixels that are left."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mmguard.functional.checks import shape_of
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import LossGuard, mark


class LovaszGuard(LossGuard):
    """Leaves out images, or the whole batch, without a pixel to train on, which the stock loss cannot stack.

    Like the stock loss it selects by value, so it synchronises.
    """

    serves = ('mmseg.LovaszLoss',)

    def _is_binary(self) -> bool:
        return self.loss.cls_criterion.__name__ == 'lovasz_hinge'

    def check(self, pred: Tensor, label: Tensor) -> None:
        if not self._is_binary():
            super().check(pred, label)
        elif pred.numel() != label.numel() or label.is_floating_point():
            raise ValueError(
                f'binary LovaszLoss needs one score and one integer label per pixel: label has shape '
                f'{shape_of(label)} ({label.dtype}), cls_score {shape_of(pred)}'
            )

    def num_classes(self, pred: Tensor) -> int:
        return 2 if self._is_binary() else pred.shape[1]

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        target = mark(sanitized, num_classes)
        if not target.numel():
            return pred[:0].sum()
        if self._is_binary():
            # Images without a pixel count as 0 there, and a single pixel is no trouble.
            return self.loss(pred, target, *args, ignore_index=num_classes, **kwargs)
        pixels = sanitized.keep.flatten(1).sum(1)
        if not pixels.any():
            return pred[:0].sum()
        if self.loss.per_image:
            has_pixels = pixels > 0
            pred, target, pixels = pred[has_pixels], target[has_pixels], pixels[has_pixels]
        smallest = pixels.min() if self.loss.per_image else pixels.sum()
        if smallest == 1:
            # The stock loss squeezes a single pixel's index away. Every pixel twice has the same Jaccard index.
            pred, target = torch.cat([pred, pred], dim=-1), torch.cat([target, target], dim=-1)
        return self.loss(pred, target, *args, ignore_index=num_classes, **kwargs)
