"""Guards of mmdet's losses, which have a background label, no ignored label, and an ``avg_factor`` argument."""

from __future__ import annotations

from typing import Any, ClassVar, Dict, Optional, Tuple

import torch
from torch import Tensor, nn

from mmguard.functional import sigmoid_cross_entropy, softmax_cross_entropy
from mmguard.functional.compute import AvgFactor, correct_for_excluded, correct_mean, scale_avg_factor
from mmguard.functional.format import CERTAIN, Sanitized
from mmguard.functional.validate import OPENMMLAB, format_shape, validate_class_target
from mmguard.labels.loss_selection import DENSE
from mmguard.losses.guards.base import LossGuard, mark


class DetectionGuard(LossGuard):
    """Guard of losses with classes ``[0, num_classes)``, the background label ``num_classes``, and no ignored label.

    If ``GuardedLoss`` has its own ``ignore_index``, elements with this label are excluded.
    """

    background = True

    @property
    def ignore_index(self) -> Optional[int]:  # type: ignore[override]
        return None


def weigh(weight: Optional[Tensor], keep: Tensor, pred: Tensor) -> Tensor:
    """Return weights of shape (N,), (N, C) or (N * C,) with zeros for excluded elements."""
    if weight is None:
        return keep.to(pred.dtype)
    return reshape_weight(weight, pred).masked_fill(~keep.unsqueeze(1), 0).view(weight.shape)


def reshape_weight(weight: Tensor, pred: Tensor) -> Tensor:
    """Reshape the weights to one row per element: (N, 1) or (N, C)."""
    if weight.numel() not in (pred.shape[0], pred.numel()):
        raise ValueError(
            f'expected weight of {pred.shape[0]:,} (one per element) or {pred.numel():,} numbers (one per element and '
            f'class), got shape {format_shape(weight)}'
        )
    return weight.reshape(pred.shape[0], weight.numel() // max(pred.shape[0], 1))


def count_weighted(counted: Tensor, skipped: Tensor, weight: Optional[Tensor], pred: Tensor) -> Tuple[Tensor, Tensor]:
    """Return the numbers of valid elements and of all elements that an ``avg_factor`` counts: 0-d.

    ``counted`` and ``skipped`` are masks of valid and invalid elements. Elements with weight 0 are not counted.
    """
    if weight is not None:
        weighs = (reshape_weight(weight, pred) != 0).any(dim=1)
        counted, skipped = counted & weighs, skipped & weighs
    kept = counted.sum()
    return kept, kept + skipped.sum()


def mean_correction(sanitized: Sanitized) -> Tensor:
    """Return the ratio that turns a mean in which excluded elements have loss 0 into a mean without them."""
    return correct_for_excluded(sanitized.keep.sum(), sanitized.keep.numel())


class FocalDetectionGuard(DetectionGuard):
    """Guard that turns an invalid element into background with weight 0."""

    serves: ClassVar[Tuple[str, ...]] = ('mmdet.FocalLoss', 'mmdet.FocalCustomLoss')

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return pred.dim() == target.dim()

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        return self._call_by_positives(pred, sanitized, num_classes, mark(sanitized, num_classes), *args, **kwargs)

    def _call_by_positives(
        self,
        pred: Tensor,
        sanitized: Sanitized,
        num_classes: int,
        target: Any,
        weight: Optional[Tensor] = None,
        avg_factor: Optional[AvgFactor] = None,
        reduction_override: Optional[str] = None,
    ) -> Tensor:
        zeroed = weigh(weight, sanitized.keep, pred)
        loss = self.loss(pred, target, zeroed, avg_factor, reduction_override)
        if (reduction_override or self.loss.reduction) != 'mean':
            return loss
        if avg_factor is None:
            return loss * mean_correction(sanitized)
        # The caller counted positives: labels other than the background, including invalid ones.
        positive = sanitized.keep & (sanitized.target != num_classes)
        return loss * correct_mean(avg_factor, *count_weighted(positive, sanitized.skipped, weight, pred))


class QualityFocalGuard(FocalDetectionGuard):
    """Focal guard for pairs of label and quality. The stock loss trains an invalid label as background."""

    serves = ('mmdet.QualityFocalLoss',)

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return isinstance(target, Tensor)

    def split_target(self, target: Any) -> Tuple[Tensor, Tuple[Any, ...]]:
        if len(target) != 2:
            raise ValueError(f'QualityFocalLoss needs a pair of labels and qualities, got {len(target)} parts')
        label, quality = target
        return label, (quality,)

    def check(self, pred: Tensor, label: Tensor, *others: Any) -> None:
        validate_class_target(pred, label, OPENMMLAB)
        (quality,) = others
        if quality.shape != label.shape:
            raise ValueError(
                f'expected qualities of shape {format_shape(label)}, one per label, got {format_shape(quality)}'
            )

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        quality, *others = args
        target = (mark(sanitized, num_classes), quality)
        return self._call_by_positives(pred, sanitized, num_classes, target, *others, **kwargs)


class GHMGuard(DetectionGuard):
    """Guard that gives excluded elements weight 0, which leaves them out of the loss's histogram and divisor."""

    serves = ('mmdet.GHMC',)

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return pred.dim() == target.dim()

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        label_weight, *others = args or (kwargs.pop('label_weight'),)
        zeroed = weigh(label_weight, sanitized.keep, pred)
        return self.loss(pred, mark(sanitized, num_classes), zeroed, *others, **kwargs)


class SeesawGuard(DetectionGuard):
    """Guard that deletes excluded elements, which the loss would count. Like the stock loss, it synchronizes."""

    serves = ('mmdet.SeesawLoss',)

    def num_classes(self, pred: Tensor) -> int:
        return int(self.loss.num_classes)  # two more channels separate objects from background

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
        if reduction == 'mean' and avg_factor is not None and not keep.all():
            kept, counted = count_weighted(~sanitized.skipped, sanitized.skipped, label_weights, pred)
            avg_factor = scale_avg_factor(avg_factor, kept, counted)
        if label_weights is not None:
            label_weights = label_weights[keep]
        loss = self.loss(pred[keep], sanitized.target[keep], label_weights, avg_factor, reduction_override)
        if reduction != 'none':
            return loss
        if not isinstance(loss, dict):
            return _put_back(loss, keep)
        # The classification part has one element per positive even in the stock loss.
        parts: Dict[str, Tensor] = dict(loss)
        parts['loss_cls_objectness'] = _put_back(parts['loss_cls_objectness'], keep)
        return parts


def _put_back(loss: Tensor, keep: Tensor) -> Tensor:
    return torch.zeros(keep.shape, dtype=loss.dtype, device=loss.device).masked_scatter(keep, loss)


class EQLV2Guard(DetectionGuard):
    """Guard that replaces an excluded row by a certain and correct prediction of the background.

    The row's loss and accumulated gradient are exactly 0. No element is deleted, so the guard does not synchronize, and
    each rank takes part in the loss's reduction over ranks.
    """

    serves = ('mmdet.EQLV2Loss',)

    def num_classes(self, pred: Tensor) -> int:
        return pred.shape[1] - 1

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        certain = pred.new_full(pred.shape[1:], -CERTAIN)
        certain[num_classes] = CERTAIN
        pred = torch.where(sanitized.keep.unsqueeze(1), pred, certain)
        return self.loss(pred, mark(sanitized, num_classes), *args, **kwargs) * mean_correction(sanitized)


class CrossEntropyCustomGuard(DetectionGuard):
    """Guard that calls the functions of ``mmdet.GuardedCrossEntropyLoss`` with the settings of the loss."""

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
        # The functions distinguish ignored from invalid; both get values that cannot be a class.
        ignored, invalid = -100, -101
        target = sanitized.target.masked_fill(sanitized.ignored, ignored).masked_fill(sanitized.skipped, invalid)
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


class DenseGuard(LossGuard):
    """Guard of losses with dense targets, which pass through unchanged."""

    serves = DENSE

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return True
