"""mmseg's FocalLoss: element-wise, averaged over all elements."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from mmguard.functional.reduction import AvgFactor, scale_avg_factor
from mmguard.functional.sanitize import Sanitized, kept_and_counted
from mmguard.losses.guards.base import LossGuard, mark, skipped_of


class FocalGuard(LossGuard):
    serves = ('mmseg.FocalLoss',)

    def is_dense(self, pred: Tensor, label: Tensor) -> bool:
        return pred.shape == label.shape

    def num_classes(self, pred: Tensor) -> int:
        return max(pred.shape[1], 2)  # one channel tells two classes apart

    def __call__(
        self,
        pred: Tensor,
        sanitized: Sanitized,
        num_classes: int,
        weight: Optional[Tensor] = None,
        avg_factor: Optional[AvgFactor] = None,
        reduction_override: Optional[str] = None,
        **kwargs: Any,
    ) -> Tensor:
        reduction = reduction_override or self.loss.reduction
        if avg_factor is not None and reduction == 'mean':
            # The callers of focal losses count positives; what mmseg ignores is none.
            avg_factor = scale_avg_factor(avg_factor, *kept_and_counted(skipped_of(sanitized), ~sanitized.ignored))
        if pred.is_cuda:
            # -1 never survives to the kernel: the loss sets its ignore value to 0 first.
            target = mark(sanitized, -1)
            loss = self.loss(pred, target, weight, avg_factor, reduction_override, ignore_index=-1, **kwargs)
        else:
            # Off CUDA the stock loss fails on class indices (it picks one column of the one-hot target), so it
            # gets the one-hot target that it would have made.
            keep = sanitized.keep.flatten().to(pred.dtype)
            if weight is None:
                weight = keep
            else:  # one per element, or one per element and class
                weight = keep.unsqueeze(1) * weight if weight.dim() == 2 else keep * weight.flatten()
            target = _one_hot(pred, mark(sanitized, num_classes))
            loss = self.loss(pred, target, weight, avg_factor, reduction_override, ignore_index=-1, **kwargs)
        if reduction == 'mean' and avg_factor is None:
            seen, skipped, _ = sanitized.counts.unbind()
            loss = loss * (seen / (seen - skipped).clamp(min=1))
        return loss


def _one_hot(pred: Tensor, target: Tensor) -> Tensor:
    channels = pred.shape[1]
    if channels == 1:
        return (target == 1).unsqueeze(1).to(pred.dtype)
    # Not F.one_hot, which looks at the labels: before torch 2.2 it waits for the device.
    classes = torch.arange(channels, device=target.device).view(-1, *[1] * (target.dim() - 1))
    return (target.unsqueeze(1) == classes).to(pred.dtype)
