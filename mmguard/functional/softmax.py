"""Softmax cross entropy, robust against any label."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.checks import check_class_weight, check_index_target, check_weight
from mmguard.functional.reduction import (
    HALF_DTYPES,
    AvgFactor,
    correct_for_excluded,
    correct_mean,
    reduce_loss,
    sum_float32,
)
from mmguard.functional.sanitize import ClassTarget, build_counts, count_for_factor, sanitize_class_target


def softmax_cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    *,
    class_weight: Optional[Tensor] = None,
    reduction: str = 'mean',
    avg_factor: Optional[AvgFactor] = None,
    ignore_index: int = -100,
    avg_non_ignore: bool = False,
    average_by_class_weight: bool = True,
    on_invalid: str = 'ignore',
) -> Tuple[Tensor, Tensor]:
    r"""Compute the cross entropy of softmax scores; invalid labels are excluded from numerator and denominator.

    ``loss = sum_i w_i c[y_i] (-log softmax(x_i)[y_i]) / D`` over the elements whose label ``y_i`` is a class, with
    element weights ``w`` and class weights ``c``. ``D`` is ``avg_factor``; without one ``sum_i c[y_i]`` if
    ``average_by_class_weight`` and class weights are given (mmseg's rule, and PyTorch's), else the number of elements
    (mmdet's rule). Ignored elements are counted in ``D`` unless ``avg_non_ignore``, as in the frameworks; where
    ``ignore_index`` is not a class it has no class weight and adds nothing. Invalid elements are never counted.

    Args:
        logits (Tensor): Shape (N, C, \*), floating point.
        target (Tensor): Shape (N, \*), any integer dtype.
        weight (Tensor, optional): Element weights, shape of ``target`` (sizes of 1 are broadcast).
        class_weight (Tensor, optional): Shape (C,), float32.
        reduction (str): ``'none'`` (returns the shape of ``target``), ``'mean'`` or ``'sum'``.
        avg_factor (float or Tensor, optional): Denominator of ``'mean'``; invalid elements leave it
            (:func:`~mmguard.functional.scale_avg_factor`).
        ignore_index (int): The label to ignore.
        avg_non_ignore (bool): Exclude ignored elements from the denominator.
        average_by_class_weight (bool): Include class weights in the denominator.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.

    Returns:
        tuple[Tensor, Tensor]: the loss, and int64 counts (3,): elements seen, skipped, remapped.

    Raises:
        ValueError: Shapes that do not fit; ``avg_factor`` with ``'sum'``.
        TypeError: Scores that are not floating point, labels that are.
        LabelGuardError: An invalid label, with ``on_invalid='raise'``.

    Example:
        >>> import torch
        >>> logits = torch.zeros(3, 2, requires_grad=True)
        >>> loss, counts = softmax_cross_entropy(logits, torch.tensor([0, 19, 1]))
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [3, 1, 0])
    """
    loss, valid = softmax_cross_entropy_and_valid(
        logits,
        target,
        weight,
        class_weight=class_weight,
        reduction=reduction,
        avg_factor=avg_factor,
        ignore_index=ignore_index,
        avg_non_ignore=avg_non_ignore,
        average_by_class_weight=average_by_class_weight,
        on_invalid=on_invalid,
    )
    return loss, build_counts(target.numel(), valid, on_invalid)


def softmax_cross_entropy_and_valid(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor],
    *,
    class_weight: Optional[Tensor],
    reduction: str,
    avg_factor: Optional[AvgFactor],
    ignore_index: int,
    avg_non_ignore: bool,
    average_by_class_weight: bool,
    on_invalid: str,
) -> Tuple[Tensor, Tensor]:
    """Compute :func:`softmax_cross_entropy`, and return the number of valid elements instead of the counts."""
    check_index_target(logits, target)
    num_classes = logits.shape[1]
    check_weight(weight, target)
    check_class_weight(class_weight, num_classes)
    averages_weights = reduction == 'mean' and avg_factor is None and average_by_class_weight
    looks_up = class_weight is not None and (averages_weights or logits.dtype in HALF_DTYPES)
    sanitized = sanitize_class_target(target, num_classes, ignore_index, on_invalid, mark_ignored=not looks_up)
    valid = sanitized.count_valid()
    weights = sanitized.look_up_weights(class_weight.float()) if looks_up and class_weight is not None else None
    loss = _compute_loss(logits, sanitized, class_weight, weights)
    correction = None  # of a mean that counts invalid elements; exactly 1 without them
    if reduction == 'mean' and avg_factor is None:
        if averages_weights and weights is not None and class_weight is not None:
            avg_factor = _sum_weights(sanitized, class_weight, weights, avg_non_ignore)
        elif average_by_class_weight or avg_non_ignore:
            avg_factor = _count_in_mean(sanitized, valid, avg_non_ignore)
        else:
            correction = correct_for_excluded(_count_in_mean(sanitized, valid, False), target.numel(), loss.dtype)
    elif reduction == 'mean' and avg_factor is not None and on_invalid != 'clip':
        kept, counted = valid, torch.full_like(valid, target.numel())
        if weight is not None:
            kept, counted = count_for_factor(sanitized.find_valid(), (weight != 0).expand_as(target))
        correction = correct_mean(avg_factor, kept, counted)
    loss = reduce_loss(loss, weight, reduction, avg_factor)
    return loss if correction is None else loss * correction, valid


def _compute_loss(
    logits: Tensor, sanitized: ClassTarget, class_weight: Optional[Tensor], weights: Optional[Tensor]
) -> Tensor:
    """Compute the loss of each element, 0 if it is excluded; float32 for weighted half precision."""
    half = logits.dtype in HALF_DTYPES
    # PyTorch wants the weights in the dtype of the logits. Rounded to half precision they would no longer match the
    # denominator, and large ones would be infinite.
    weight = None if class_weight is None or half else class_weight.to(logits.dtype)
    loss = F.cross_entropy(logits, sanitized.target, weight, ignore_index=sanitized.excluded, reduction='none')
    return loss * weights if half and weights is not None else loss


def _count_in_mean(sanitized: ClassTarget, valid: Tensor, avg_non_ignore: bool) -> Tensor:
    """Count the elements in the denominator: int64, 0-d."""
    if sanitized.on_invalid == 'clip' and not avg_non_ignore:
        return torch.full_like(valid, sanitized.given.numel())
    return sanitized.count_kept() if avg_non_ignore else valid


def _sum_weights(sanitized: ClassTarget, class_weight: Tensor, weights: Tensor, avg_non_ignore: bool) -> Tensor:
    """Sum the class weights of the elements in the denominator."""
    ignore_index = sanitized.ignore_index
    if not avg_non_ignore and 0 <= ignore_index < sanitized.num_classes:  # in one sum, as mmseg adds them up
        counted = sanitized.target.masked_fill(sanitized.find_ignored(), ignore_index)
        weights = sanitized._replace(target=counted).look_up_weights(class_weight.float())
    return sum_float32(weights)
