"""mmdet's FocalLoss: element-wise, averaged by the number of positives."""

from __future__ import annotations

from typing import Any, ClassVar, Optional, Tuple

from torch import Tensor

from mmguard.functional.reduction import AvgFactor
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import mark
from mmguard.losses.guards.detection import DetectionGuard, all_over_kept, weigh, without_skipped_positives


class FocalDetectionGuard(DetectionGuard):
    """An invalid element becomes background of weight 0."""

    serves: ClassVar[Tuple[str, ...]] = ('mmdet.FocalLoss', 'mmdet.FocalCustomLoss')

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return pred.dim() == target.dim()

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        return self._by_positives(pred, sanitized, num_classes, mark(sanitized, num_classes), *args, **kwargs)

    def _by_positives(
        self,
        pred: Tensor,
        sanitized: Sanitized,
        num_classes: int,
        target: Any,
        weight: Optional[Tensor] = None,
        avg_factor: Optional[AvgFactor] = None,
        reduction_override: Optional[str] = None,
    ) -> Tensor:
        is_mean = (reduction_override or self.loss.reduction) == 'mean'
        factor = avg_factor
        if is_mean and avg_factor is not None:
            factor = without_skipped_positives(avg_factor, sanitized, num_classes, weight, pred)
        zeroed = weigh(weight, sanitized.keep, pred)
        loss = self.loss(pred, target, zeroed, factor, reduction_override)
        return loss * all_over_kept(sanitized) if is_mean and avg_factor is None else loss
