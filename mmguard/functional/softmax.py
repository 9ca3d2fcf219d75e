"""Softmax cross entropy, robust against any label."""

from __future__ import annotations

from typing import Optional, Tuple, Union

import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.checks import check_class_weight, check_index_target, check_weight
from mmguard.functional.reduction import HALF_DTYPES, AvgFactor, correct_for_excluded, correct_mean, reduce_loss
from mmguard.functional.sanitize import ClassTarget, count_for_factor, sanitize_class_target


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
    check_index_target(logits, target)
    num_classes = logits.shape[1]
    check_weight(weight, target)
    check_class_weight(class_weight, num_classes)
    sanitized = sanitize_class_target(target, num_classes, ignore_index, on_invalid)
    kept, ignored = sanitized.count_kept(), sanitized.count_ignored()
    counts = sanitized.counts(kept, ignored)
    loss = _compute_loss(logits, sanitized, class_weight)
    correction = None  # of a mean that counts invalid elements; exactly 1 without them
    if reduction == 'mean':
        if avg_factor is None and (average_by_class_weight or avg_non_ignore):
            by_weight = class_weight if average_by_class_weight else None
            avg_factor = _compute_denominator(sanitized, by_weight, kept, 0 if avg_non_ignore else ignored)
        elif avg_factor is None:
            correction = correct_for_excluded(kept + ignored, target.numel(), loss.dtype)
        elif on_invalid != 'clip':
            seen, skipped, _ = counts.unbind()
            valid, counted = seen - skipped, seen
            if weight is not None:
                invalid = sanitized.find_invalid()
                valid, counted = count_for_factor(invalid, (weight != 0).expand_as(invalid))
            correction = correct_mean(avg_factor, valid, counted)
    loss = reduce_loss(loss, weight, reduction, avg_factor)
    return loss if correction is None else loss * correction, counts


def _compute_loss(logits: Tensor, sanitized: ClassTarget, class_weight: Optional[Tensor]) -> Tensor:
    """Compute the loss of each element, 0 if it is excluded; float32 for weighted half precision."""
    half = logits.dtype in HALF_DTYPES
    # PyTorch wants the weights in the dtype of the logits. Rounded to half precision they would no longer match the
    # denominator, and large ones would be infinite.
    weight = None if class_weight is None or half else class_weight.to(logits.dtype)
    loss = F.cross_entropy(logits, sanitized.target, weight, ignore_index=sanitized.num_classes, reduction='none')
    return loss * sanitized.look_up_weights(class_weight.float()) if half and class_weight is not None else loss


def _compute_denominator(
    sanitized: ClassTarget, class_weight: Optional[Tensor], kept: Tensor, ignored: Union[Tensor, int]
) -> Tensor:
    """Sum the weights of the elements in the denominator, ``ignored`` ones too: their class weights, or 1 each."""
    if class_weight is None:
        return kept + ignored
    ignore_index = sanitized.ignore_index
    if isinstance(ignored, Tensor) and 0 <= ignore_index < sanitized.num_classes:  # in one sum, as mmseg adds them up
        counted = sanitized.target.masked_fill(sanitized.find_ignored(), ignore_index)
        sanitized = sanitized._replace(target=counted)
    return sanitized.weight(class_weight.float())
