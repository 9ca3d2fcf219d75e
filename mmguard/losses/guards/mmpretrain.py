"""Guards of mmpretrain's losses on labels or scores of images, averaged over the images."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from mmguard.functional.checks import check_dense_target, check_index_target
from mmguard.functional.reduction import AvgFactor, scale_avg_factor
from mmguard.functional.sanitize import Sanitized, count, sanitize_binary_target, sanitize_target
from mmguard.functional.soft import sanitize_distributions
from mmguard.labels.rules import UNLABELED
from mmguard.losses.guards.base import LossGuard
from mmguard.losses.guards.mmdet import SeesawGuard, mean_correction


class ClassificationGuard(LossGuard):
    """Guard that gives weight 0 to an excluded image, and leaves it out of the denominator.

    A row of scores (N, C) is valid if it is a distribution over the classes; with a sigmoid loss, if each entry is in
    [0, 1]. A row with NaN comes from GuardClsLabels, maybe through MixUp: it has no label, and is not counted again.
    """

    serves = (
        'mmpretrain.CrossEntropyLoss',
        'mmpretrain.LabelSmoothLoss',
        'mmpretrain.AsymmetricLoss',
        'mmpretrain.FocalLoss',
    )

    @property
    def ignore_index(self) -> int:
        return UNLABELED

    def check(self, pred: Tensor, label: Tensor, *others: Any) -> None:
        if _is_score(pred, label):
            check_dense_target(pred, label)
        else:
            check_index_target(pred, label)

    def sanitize(
        self, pred: Tensor, label: Tensor, num_classes: int, ignore_index: Optional[int], on_invalid: str
    ) -> Sanitized:
        if _is_score(pred, label):
            return _sanitize_scores(label, pred.dtype, self._is_sigmoid, on_invalid)
        sanitized = sanitize_target(label, num_classes, ignore_index, on_invalid)
        skipped = ~sanitized.keep  # ignored images, too, are left out of the denominator
        return sanitized._replace(invalid=skipped, skipped=skipped)

    @property
    def _is_sigmoid(self) -> bool:
        return bool(getattr(getattr(self.loss, 'ce', self.loss), 'use_sigmoid', True))

    def __call__(  # type: ignore[override]
        self,
        pred: Tensor,
        sanitized: Sanitized,
        num_classes: int,
        weight: Optional[Tensor] = None,
        avg_factor: Optional[AvgFactor] = None,
        reduction_override: Optional[str] = None,
        **kwargs: Any,
    ) -> Tensor:
        keep = sanitized.keep
        is_mean = (reduction_override or self.loss.reduction) == 'mean'
        factor = avg_factor
        if is_mean and avg_factor is not None:
            counted = torch.ones_like(keep) if weight is None else weight != 0
            factor = scale_avg_factor(avg_factor, (counted & keep).sum(), counted.sum())
        zeroed = keep.float() if weight is None else weight.masked_fill(~keep, 0)
        loss = self.loss(
            pred, sanitized.target, weight=zeroed, avg_factor=factor, reduction_override=reduction_override, **kwargs
        )
        return loss * mean_correction(sanitized) if is_mean and avg_factor is None else loss


class ClassificationSeesawGuard(SeesawGuard):
    """Guard of mmpretrain's SeesawLoss, in which every channel is a class."""

    serves = ('mmpretrain.SeesawLoss',)
    background = False

    @property
    def ignore_index(self) -> int:
        return UNLABELED

    def sanitize(
        self, pred: Tensor, label: Tensor, num_classes: int, ignore_index: Optional[int], on_invalid: str
    ) -> Sanitized:
        sanitized = sanitize_target(label, num_classes, ignore_index, on_invalid)
        skipped = ~sanitized.keep
        return sanitized._replace(invalid=skipped, skipped=skipped)

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Any:
        kwargs = {{'weight': 'label_weights'}.get(name, name): value for name, value in kwargs.items()}
        return super().__call__(pred, sanitized, num_classes, *args, **kwargs)


def _is_score(pred: Tensor, label: Tensor) -> bool:
    return label.dim() == pred.dim()


def _sanitize_scores(score: Tensor, dtype: torch.dtype, is_sigmoid: bool, on_invalid: str) -> Sanitized:
    """Sanitize scores (N, C) and decide for each row if it stays in the loss."""
    score = score if score.is_floating_point() else score.to(dtype)
    unlabelled = score.isnan().any(dim=1)
    given = score.masked_fill(unlabelled.unsqueeze(1), 1 / score.shape[1])  # valid in either mode
    if is_sigmoid:
        binary = sanitize_binary_target(given, score.dtype, None, on_invalid)
        target, keep = binary.target, binary.keep.all(dim=1)
        counts = count(binary.invalid.any(dim=1), on_invalid)
    else:
        rows = sanitize_distributions(given, 1, on_invalid)
        target, keep, counts = rows.target, rows.keep, rows.counts
    keep = keep & ~unlabelled
    return Sanitized(target.masked_fill(~keep.unsqueeze(1), 0), keep, ~keep, unlabelled, counts, skipped=~keep)
