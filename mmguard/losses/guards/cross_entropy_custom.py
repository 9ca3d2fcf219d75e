"""CrossEntropyCustomLoss: the head asks it for channels and activation, the arithmetic is mmguard's."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmguard.functional import sigmoid_cross_entropy, softmax_cross_entropy
from mmguard.functional.reduction import AvgFactor
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import skipped_of
from mmguard.losses.guards.detection import DetectionGuard


class CrossEntropyCustomGuard(DetectionGuard):
    """The functions behind ``mmdet.GuardedCrossEntropyLoss``, with the settings of the loss."""

    serves = ('mmdet.CrossEntropyCustomLoss',)

    def __init__(self, loss: nn.Module) -> None:
        super().__init__(loss)
        if self.loss.use_mask:
            raise TypeError(
                'GuardedLoss cannot guard mmdet.CrossEntropyCustomLoss in mask mode: write '
                "type='GuardedCrossEntropyLoss', use_mask=True"
            )

    @property
    def ignore_index(self) -> Optional[int]:  # type: ignore[override]
        return self.loss.ignore_index

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return self.loss.use_sigmoid and pred.dim() == target.dim()

    def num_classes(self, pred: Tensor) -> int:
        return pred.shape[1] if self.loss.use_sigmoid else pred.shape[1] - 1

    def __call__(  # type: ignore[override]
        self,
        pred: Tensor,
        sanitized: Sanitized,
        num_classes: int,
        weight: Optional[Tensor] = None,
        avg_factor: Optional[AvgFactor] = None,
        reduction_override: Optional[str] = None,
    ) -> Tensor:
        # The functions tell ignored from invalid; both are moved to where no class can be.
        ignored, invalid = -100, -101
        target = sanitized.target.masked_fill(sanitized.ignored, ignored).masked_fill(skipped_of(sanitized), invalid)
        weights = self.loss.class_weight
        settings = {
            'class_weight': None if weights is None else torch.as_tensor(weights, dtype=torch.float32).to(pred.device),
            'reduction': reduction_override or self.loss.reduction,
            'avg_factor': avg_factor,
            'ignore_index': ignored,
            'avg_non_ignore': self.loss.avg_non_ignore,
        }
        if self.loss.use_sigmoid:
            loss, _ = sigmoid_cross_entropy(pred, target, weight, background=True, **settings)
        else:
            loss, _ = softmax_cross_entropy(pred, target, weight, average_by_class_weight=False, **settings)
        return self.loss.loss_weight * loss
