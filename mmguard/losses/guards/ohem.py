"""OhemCrossEntropy: hard example mining over the pixels that are left."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import LossGuard, mark


class OhemGuard(LossGuard):
    serves = ('mmseg.OhemCrossEntropy',)

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        loss = self.loss(pred, mark(sanitized, self.ignore_index), *args, **kwargs)
        # With few pixels, all of them easy, the stock loss selects none of them and its mean is NaN. NaN scores
        # must stay visible, so only a NaN out of finite scores is taken for that case.
        nothing_selected = loss.isnan() & _all_finite(pred.detach())
        return torch.where(nothing_selected, torch.zeros_like(loss), loss)


def _all_finite(scores: Tensor) -> Tensor:
    """A tenth of ``scores.isfinite().all()``, which writes tensors of the size of the scores: the extremes are enough,
    and NaN is one."""
    return torch.stack(scores.aminmax()).isfinite().all() if scores.numel() else scores.new_ones((), dtype=torch.bool)
