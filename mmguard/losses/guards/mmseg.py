"""Guards that call mmseg's losses so that excluded pixels do not affect them."""

from __future__ import annotations

import copy
import inspect
from math import inf
from typing import Any, Optional

import torch
from torch import Tensor, nn

from mmguard.functional.compute import AvgFactor, correct_for_excluded, correct_mean
from mmguard.functional.format import Sanitized
from mmguard.functional.update import count_for_factor
from mmguard.functional.validate import format_shape
from mmguard.losses.guards.base import LossGuard, mark, select_scores


class OwnIgnoreGuard(LossGuard):
    """Guard that sets excluded labels to the loss's own ``ignore_index``, for TverskyLoss and unknown losses."""

    serves = ('mmseg.TverskyLoss',)

    def __init__(self, loss: nn.Module) -> None:
        super().__init__(loss)
        self._by_argument = 'ignore_index' in inspect.signature(loss.forward).parameters

    @staticmethod
    def can_serve(loss: nn.Module) -> bool:
        by_attribute = any(isinstance(getattr(loss, name, None), int) for name in ('ignore_index', 'ignore_label'))
        return by_attribute or 'ignore_index' in inspect.signature(loss.forward).parameters

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        if not sanitized.target.numel():
            return pred.sum()  # 0, attached to the graph: not every loss accepts an empty batch
        ignore_index = self.ignore_index
        if self._by_argument:
            if 0 <= ignore_index < num_classes:
                ignore_index = num_classes  # the loss's ignore_index is a class, and may be a valid label
            kwargs['ignore_index'] = ignore_index
        return self.loss(pred, mark(sanitized, ignore_index), *args, **kwargs)


class OhemGuard(LossGuard):
    serves = ('mmseg.OhemCrossEntropy',)

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        loss = self.loss(pred, mark(sanitized, self.ignore_index), *args, **kwargs)
        # With few pixels, all of them easy, the stock loss selects none and its mean is NaN. NaN from NaN scores
        # must stay visible, so only a NaN from finite scores is replaced.
        nothing_selected = loss.isnan() & _is_finite(pred.detach())
        return torch.where(nothing_selected, torch.zeros_like(loss), loss)


def _is_finite(scores: Tensor) -> Tensor:
    """Compute ``scores.isfinite().all()`` ten times as fast: the minimum and the maximum are NaN if a score is NaN."""
    return torch.stack(scores.aminmax()).isfinite().all() if scores.numel() else scores.new_ones((), dtype=torch.bool)


class FocalGuard(LossGuard):
    serves = ('mmseg.FocalLoss',)

    def is_dense(self, pred: Tensor, label: Tensor) -> bool:
        return pred.shape == label.shape

    def num_classes(self, pred: Tensor) -> int:
        return max(pred.shape[1], 2)  # one channel separates two classes

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
        if pred.is_cuda:
            # -1 never survives to the kernel: the loss sets its ignore value to 0 first.
            target = mark(sanitized, -1)
            loss = self.loss(pred, target, weight, avg_factor, reduction_override, ignore_index=-1, **kwargs)
        else:
            # Off CUDA the stock loss fails on class indices (it picks one column of the one-hot target), so it
            # gets the one-hot target that it would have built.
            keep = sanitized.keep.flatten().to(pred.dtype)
            if weight is None:
                weight = keep
            else:  # one per element, or one per element and class
                weight = keep.unsqueeze(1) * weight if weight.dim() == 2 else keep * weight.flatten()
            target = _encode_one_hot(pred, mark(sanitized, num_classes))
            loss = self.loss(pred, target, weight, avg_factor, reduction_override, ignore_index=-1, **kwargs)
        if reduction != 'mean':
            return loss
        if avg_factor is None:
            return loss * _correct_for_skipped(sanitized)
        # The callers of focal losses count positives, and ignored pixels are not positive.
        return loss * correct_mean(avg_factor, *count_for_factor(~sanitized.skipped, ~sanitized.ignored))


def _correct_for_skipped(sanitized: Sanitized) -> Tensor:
    seen = sanitized.target.numel()
    clipped = sanitized.on_invalid == 'clip'
    return correct_for_excluded(torch.full_like(sanitized.valid, seen) if clipped else sanitized.valid, seen)


def _encode_one_hot(pred: Tensor, target: Tensor) -> Tensor:
    channels = pred.shape[1]
    if channels == 1:
        return (target == 1).unsqueeze(1).to(pred.dtype)
    # Not F.one_hot, which reads the labels: before torch 2.2 it waits for the device.
    classes = torch.arange(channels, device=target.device).view(-1, *[1] * (target.dim() - 1))
    return (target.unsqueeze(1) == classes).to(pred.dtype)


class DiceGuard(LossGuard):
    """Guard that sets probabilities and targets of invalid pixels to 0, so that they add nothing to any sum.

    The stock loss sets the targets of ignored pixels to 0, but keeps their probabilities in the denominator; the guard
    does not change this. Probabilities of invalid pixels are set to 0 after the activation.
    """

    serves = ('mmseg.DiceLoss',)

    @property
    def ignore_index(self) -> int:
        # The loss's `ignore_index` is a channel to leave out, but any label beyond the classes gets a row of zeros.
        own = self.loss.ignore_index
        return 255 if own is None else int(own)

    def is_dense(self, pred: Tensor, label: Tensor) -> bool:
        return pred.shape == label.shape

    def num_classes(self, pred: Tensor) -> int:
        return max(pred.shape[1], 2)

    def blank_scores(self, pred: Tensor, sanitized: Sanitized) -> Tensor:
        # Sigmoid turns -inf into exactly 0; for softmax, ``__call__`` sets the probabilities to 0.
        fill = -inf if self.loss.activate and self.loss.use_sigmoid else 0
        return select_scores(~sanitized.skipped.unsqueeze(1), pred, fill)

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        if self.loss.activate:
            if self.loss.use_sigmoid:
                pred = pred.sigmoid()
            elif pred.shape[1] != 1:
                pred = select_scores(~sanitized.skipped.unsqueeze(1), pred.softmax(dim=1))
        on_probabilities: Any = copy.copy(self.loss)
        on_probabilities.activate = False
        # A label beyond the channels becomes a row of zeros.
        target = mark(sanitized, max(num_classes, pred.shape[1]))
        return on_probabilities(pred, target, *args, **kwargs)


class LovaszGuard(LossGuard):
    """Guard that leaves out images (or the batch) without trainable pixels, which the stock loss cannot stack.

    Like the stock loss, it indexes with a mask, so it waits for the device.
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
                f'{format_shape(label)} ({label.dtype}), cls_score {format_shape(pred)}'
            )

    def num_classes(self, pred: Tensor) -> int:
        return 2 if self._is_binary() else pred.shape[1]

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        target = mark(sanitized, num_classes)
        if not target.numel():
            return pred[:0].sum()
        if self._is_binary():
            # The binary stock loss accepts images without a pixel, which count as 0, and with a single one.
            return self.loss(pred, target, *args, ignore_index=num_classes, **kwargs)
        pixels = sanitized.keep.flatten(1).sum(1)
        if not pixels.any():
            return pred[:0].sum()
        if self.loss.per_image:
            has_pixels = pixels > 0
            pred, target, pixels = pred[has_pixels], target[has_pixels], pixels[has_pixels]
        smallest = pixels.min() if self.loss.per_image else pixels.sum()
        if smallest == 1:
            # The stock loss squeezes a single pixel's dimension away. Doubling all pixels keeps the Jaccard index.
            pred, target = torch.cat([pred, pred], dim=-1), torch.cat([target, target], dim=-1)
        return self.loss(pred, target, *args, ignore_index=num_classes, **kwargs)


class BoundaryGuard(LossGuard):
    serves = ('mmseg.BoundaryLoss',)

    def check(self, pred: Tensor, label: Tensor) -> None:
        if pred.numel() != label.numel() or label.is_floating_point():
            raise ValueError(
                f'BoundaryLoss needs one score and one integer edge label per pixel: label has shape '
                f'{format_shape(label)} ({label.dtype}), cls_score {format_shape(pred)}'
            )

    def num_classes(self, pred: Tensor) -> int:
        return 2

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        # The loss gives weight only to 0 and 1, but divides by every pixel.
        loss = self.loss(pred, mark(sanitized, self.ignore_index), *args, **kwargs)
        return loss * _correct_for_skipped(sanitized)
