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

    serves = ('mmseg.LovaszLoss', 'mmdet3d.LovaszLoss')

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
        of_points = pred.dim() == 2  # mmdet3d's: (P, C), one sample
        pixels = (sanitized.keep.unsqueeze(0) if of_points else sanitized.keep).flatten(1).sum(1)
        if not pixels.any():
            return pred[:0].sum()
        per_image = getattr(self.loss, 'per_sample' if hasattr(self.loss, 'per_sample') else 'per_image')
        if per_image:
            has_pixels = pixels > 0
            pred, target, pixels = pred[has_pixels], target[has_pixels], pixels[has_pixels]
        smallest = pixels.min() if per_image else pixels.sum()
        if smallest == 1:
            # The stock loss squeezes a single pixel's index away. Every pixel twice has the same Jaccard index.
            across = 0 if of_points else -1
            pred, target = torch.cat([pred, pred], dim=across), torch.cat([target, target], dim=across)
        return self.loss(pred, target, *args, ignore_index=num_classes, **kwargs)
