"""QualityFocalLoss: its target is a pair of labels and qualities (or dense)."""

from __future__ import annotations

from typing import Any, Tuple

from torch import Tensor

from mmguard.functional.checks import check_index_target, shape_of
from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import mark
from mmguard.losses.guards.focal_detection import FocalDetectionGuard


class QualityFocalGuard(FocalDetectionGuard):
    """As :class:`FocalDetectionGuard`; stock trains whatever is no class as background."""

    serves = ('mmdet.QualityFocalLoss',)

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return isinstance(target, Tensor)

    def parts(self, target: Any) -> Tuple[Tensor, Tuple[Any, ...]]:
        if len(target) != 2:
            raise ValueError(f'QualityFocalLoss needs a pair of labels and qualities, got {len(target)} parts')
        label, quality = target
        return label, (quality,)

    def check(self, pred: Tensor, label: Tensor, *beside: Any) -> None:
        check_index_target(pred, label)
        (quality,) = beside
        if quality.shape != label.shape:
            raise ValueError(
                f'one quality per label is needed: label has shape {shape_of(label)}, the qualities {shape_of(quality)}'
            )

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        quality, *others = args
        target = (mark(sanitized, num_classes), quality)
        return self._by_positives(pred, sanitized, num_classes, target, *others, **kwargs)
