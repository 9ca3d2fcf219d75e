"""SeesawLoss: counts the labels that it has seen, one class weighs against another by them."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import Tensor

from mmguard.functional.reduction import AvgFactor
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.detection import DetectionGuard, without_skipped_weights


class SeesawGuard(DetectionGuard):
    """Deletes what takes no part, or it would be counted. The stock loss selects by value, too: both synchronise."""

    serves = ('mmdet.SeesawLoss',)

    def num_classes(self, pred: Tensor) -> int:
        return int(self.loss.num_classes)  # two more channels tell objects from background

    def __call__(  # type: ignore[override]
        self,
        pred: Tensor,
        sanitized: Sanitized,
        num_classes: int,
        label_weights: Optional[Tensor] = None,
        avg_factor: Optional[AvgFactor] = None,
        reduction_override: Optional[str] = None,
    ) -> Any:
        reduction = reduction_override or self.loss.reduction
        keep = sanitized.keep
        if reduction == 'mean' and avg_factor is not None:
            avg_factor = without_skipped_weights(avg_factor, sanitized, label_weights, pred)
        if label_weights is not None:
            label_weights = label_weights[keep]
        loss = self.loss(pred[keep], sanitized.target[keep], label_weights, avg_factor, reduction_override)
        if reduction != 'none':
            return loss
        if not isinstance(loss, dict):
            return _put_back(loss, keep)
        # The part of the classes has one element per positive, whoever calls.
        parts: Dict[str, Tensor] = dict(loss)
        parts['loss_cls_objectness'] = _put_back(parts['loss_cls_objectness'], keep)
        return parts


def _put_back(loss: Tensor, keep: Tensor) -> Tensor:
    return torch.zeros(keep.shape, dtype=loss.dtype, device=loss.device).masked_scatter(keep, loss)
