"""Softmax, sigmoid and mask cross entropies that average as mmseg and mmdet do, and exclude invalid labels."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.compute import (
    HALF_DTYPES,
    AvgFactor,
    correct_for_excluded,
    correct_mean,
    reduce_loss,
    sum_float32,
)
from mmguard.functional.format import (
    BinaryTarget,
    ClassTarget,
    mask_scores,
    sanitize_binary_target,
    sanitize_class_target,
    sanitize_target,
)
from mmguard.functional.update import build_counts, count_for_factor
from mmguard.functional.validate import (
    OPENMMLAB,
    format_shape,
    validate_class_target,
    validate_class_weight,
    validate_dense_target,
    validate_dense_weight,
    validate_scores,
    validate_weight,
)


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
    element weights ``w`` and class weights ``c``. ``D`` is ``avg_factor`` if given; else ``sum_i c[y_i]`` if
    ``average_by_class_weight`` is true and class weights are given (rule of mmseg and PyTorch); else the number of
    elements (rule of mmdet). As in the frameworks, ``D`` includes ignored elements unless ``avg_non_ignore`` is true,
    but an ``ignore_index`` that is not a class has no class weight to add. ``D`` never includes invalid elements.

    Args:
        logits (Tensor): Shape (N, C, \*), floating point.
        target (Tensor): Shape (N, \*), any integer dtype.
        weight (Tensor, optional): Element weights, shape of ``target`` (sizes of 1 are broadcast).
        class_weight (Tensor, optional): Shape (C,), float32.
        reduction (str): ``'none'`` (the loss has the shape of ``target``), ``'mean'`` or ``'sum'``.
        avg_factor (float or Tensor, optional): Denominator of ``'mean'``, from which
            :func:`~mmguard.functional.scale_avg_factor` removes invalid elements.
        ignore_index (int): The label to ignore.
        avg_non_ignore (bool): Exclude ignored elements from the denominator.
        average_by_class_weight (bool): Include class weights in the denominator.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.

    Returns:
        tuple[Tensor, Tensor]: the loss, and int64 counts (3,): elements seen, skipped, remapped.

    Raises:
        ValueError: Shapes that do not fit; ``avg_factor`` with ``'sum'``.
        TypeError: Scores that are not floating point, or labels that are not integers.
        LabelGuardError: A label is invalid, and ``on_invalid`` is ``'raise'``.

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
    """Return the loss of :func:`softmax_cross_entropy`, and the number of valid elements: int64, 0-d."""
    validate_class_target(logits, target, OPENMMLAB)
    num_classes = logits.shape[1]
    validate_weight(weight, target)
    validate_class_weight(class_weight, num_classes, OPENMMLAB)
    averages_weights = reduction == 'mean' and avg_factor is None and average_by_class_weight
    looks_up = class_weight is not None and (averages_weights or logits.dtype in HALF_DTYPES)
    sanitized = sanitize_class_target(target, num_classes, ignore_index, on_invalid, mark_ignored=not looks_up)
    valid = sanitized.count_valid()
    weights = sanitized.look_up_weights(class_weight.float()) if looks_up and class_weight is not None else None
    loss = _compute_loss(logits, sanitized, class_weight, weights)
    correction = None  # ratio for a mean whose denominator counts invalid elements; exactly 1 without any
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
    """Compute the loss of each element, 0 if excluded; in float32 if half-precision scores have class weights."""
    half = logits.dtype in HALF_DTYPES
    # PyTorch wants the weights in the dtype of the logits. Rounded to half precision they would no longer match the
    # denominator, and large ones would be infinite.
    weight = None if class_weight is None or half else class_weight.to(logits.dtype)
    loss = F.cross_entropy(logits, sanitized.target, weight, ignore_index=sanitized.excluded, reduction='none')
    return loss * weights if half and weights is not None else loss


def _count_in_mean(sanitized: ClassTarget, valid: Tensor, avg_non_ignore: bool) -> Tensor:
    """Count the elements in the denominator of the mean: int64, 0-d."""
    if sanitized.on_invalid == 'clip' and not avg_non_ignore:
        return torch.full_like(valid, sanitized.given.numel())
    return sanitized.count_kept() if avg_non_ignore else valid


def _sum_weights(sanitized: ClassTarget, class_weight: Tensor, weights: Tensor, avg_non_ignore: bool) -> Tensor:
    """Sum the class weights of the elements in the denominator of the mean."""
    ignore_index = sanitized.ignore_index
    if not avg_non_ignore and 0 <= ignore_index < sanitized.num_classes:  # in one sum, as mmseg adds them up
        counted = sanitized.target.masked_fill(sanitized.find_ignored(), ignore_index)
        weights = sanitized._replace(target=counted).look_up_weights(class_weight.float())
    return sum_float32(weights)


def sigmoid_cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    *,
    class_weight: Optional[Tensor] = None,
    reduction: str = 'mean',
    avg_factor: Optional[AvgFactor] = None,
    ignore_index: int = -100,
    avg_non_ignore: bool = False,
    background: bool = False,
    on_invalid: str = 'ignore',
) -> Tuple[Tensor, Tensor]:
    r"""Compute the binary cross entropy of sigmoid scores and class indices or dense binary targets.

    Class indices become one-hot rows. If ``background`` is true, the label C is valid and its row is all zeros (mmdet).
    Dense targets are valid in [0, 1] (up to rounding); others, NaN included, are invalid. The mean is taken over
    all N x C elements except those of invalid labels and, if ``avg_non_ignore`` is true, those of ignored labels.

    Args:
        logits (Tensor): Shape (N, C, \*) for class indices, any shape for dense targets.
        target (Tensor): Class indices (N, \*) of an integer dtype, or dense targets of the shape of ``logits``.
        weight (Tensor, optional): Element weights, the shape of ``target`` (sizes of 1 are broadcast); for dense
            targets any shape that can be broadcast with ``target``.
        class_weight (Tensor, optional): Weight of the positive targets per channel, shape (C,).
        background (bool): True if the label C is valid and means background.

    The other arguments, the result and the errors are those of :func:`softmax_cross_entropy`; with ``reduction='none'``
    the loss has the shape of ``logits``.

    Example:
        >>> logits = torch.zeros(3, 2, requires_grad=True)
        >>> loss, counts = sigmoid_cross_entropy(logits, torch.tensor([0, 19, 2]), background=True)
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [3, 1, 0])
    """
    loss, valid = sigmoid_cross_entropy_and_valid(
        logits,
        target,
        weight,
        class_weight=class_weight,
        reduction=reduction,
        avg_factor=avg_factor,
        ignore_index=ignore_index,
        avg_non_ignore=avg_non_ignore,
        background=background,
        on_invalid=on_invalid,
    )
    return loss, build_counts(target.numel(), valid, on_invalid)


def sigmoid_cross_entropy_and_valid(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor],
    *,
    class_weight: Optional[Tensor],
    reduction: str,
    avg_factor: Optional[AvgFactor],
    ignore_index: int,
    avg_non_ignore: bool,
    background: bool,
    on_invalid: str,
) -> Tuple[Tensor, Tensor]:
    """Return the loss of :func:`sigmoid_cross_entropy`, and the number of valid elements: int64, 0-d."""
    dense = logits.dim() == target.dim()
    if dense:
        validate_scores(logits)
        validate_dense_target(logits, target, OPENMMLAB)
        binary, excluded, is_valid, valid, ignored = sanitize_binary_target(
            target, logits.dtype, ignore_index, on_invalid
        )
    else:
        validate_class_target(logits, target, OPENMMLAB)
        binary, excluded, is_valid, valid, ignored = _build_one_hot(
            logits, target, ignore_index, background, on_invalid
        )
        if weight is not None and weight.dim() == logits.dim() and weight.shape[1] == 1:
            weight = weight.squeeze(1)
    (validate_dense_weight if dense else validate_weight)(weight, target)
    element_weight = weight if dense or weight is None or weight.dim() == 0 else weight.unsqueeze(1)
    loss = F.binary_cross_entropy_with_logits(
        mask_scores(logits, excluded if dense else excluded.unsqueeze(1)),
        binary,
        pos_weight=_reshape_pos_weight(class_weight, logits, dense),
        reduction='none',
    )
    correction = None  # ratio for a mean whose denominator counts invalid elements; exactly 1 without any
    if reduction == 'mean':
        kept = torch.full_like(valid, target.numel()) if on_invalid == 'clip' else valid
        if avg_factor is not None:
            if on_invalid != 'clip' and weight is None:
                correction = correct_mean(avg_factor, valid, torch.full_like(valid, target.numel()))
            elif on_invalid != 'clip':
                correction = correct_mean(
                    avg_factor, *count_for_factor(*torch.broadcast_tensors(is_valid, weight != 0))
                )
        elif avg_non_ignore:
            ignored_count = 0 if ignored is None else ignored.sum()
            avg_factor = (kept - ignored_count) * (1 if dense else logits.shape[1])
        else:
            correction = correct_for_excluded(kept, target.numel())
    loss = reduce_loss(loss, element_weight, reduction, avg_factor)
    return loss if correction is None else loss * correction, valid


def _build_one_hot(
    logits: Tensor, target: Tensor, ignore_index: int, background: bool, on_invalid: str
) -> BinaryTarget:
    channels = logits.shape[1]
    sanitized = sanitize_target(target, channels, ignore_index, on_invalid, background)
    index = sanitized.target
    is_class = (sanitized.keep & (index < channels)).unsqueeze(1).to(logits.dtype)
    binary = torch.zeros_like(logits).scatter(1, index.clamp(max=channels - 1).unsqueeze(1), is_class)
    return BinaryTarget(binary, ~sanitized.keep, ~sanitized.invalid, sanitized.valid, sanitized.ignored)


def _reshape_pos_weight(class_weight: Optional[Tensor], logits: Tensor, dense: bool) -> Optional[Tensor]:
    """Reshape class weights, if any, so that they broadcast along the channels, not along the last dimension."""
    if class_weight is None:
        return None
    class_weight = class_weight.to(logits.dtype)
    if class_weight.numel() == 1:
        return class_weight
    # Dense targets (N, C), or (B, N, C) as in DETR-like heads, have their channels last.
    channel_dim = logits.dim() - 1 if dense and logits.dim() < 4 else 1
    validate_class_weight(class_weight, logits.shape[channel_dim], OPENMMLAB)
    return class_weight.view(-1, *[1] * (logits.dim() - 1 - channel_dim))


def mask_cross_entropy(
    logits: Tensor, target: Tensor, label: Tensor, *, class_weight: Optional[Tensor] = None, on_invalid: str = 'ignore'
) -> Tuple[Tensor, Tensor]:
    r"""Compute the mean binary cross entropy between target masks and the predicted masks of each instance's class.

    An instance whose label is not a class is excluded from the sum and the mean.

    Args:
        logits (Tensor): Shape (N, C, \*): one mask per instance and class.
        target (Tensor): Shape (N, \*): target masks, floating point or bool, in [0, 1].
        label (Tensor): Shape (N,): the class of each instance, an integer dtype.
        class_weight (Tensor, optional): Weight per class, shape (C,).

    Returns:
        tuple[Tensor, Tensor]: the loss, shape (1,) as in mmseg and mmdet, but 0 instead of NaN without instances,
        and int64 counts (3,): instances seen, skipped, remapped. Raises the errors of :func:`softmax_cross_entropy`.

    Example:
        >>> loss, counts = mask_cross_entropy(torch.zeros(2, 3, 4, 4), torch.ones(2, 4, 4), torch.tensor([1, 80]))
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [2, 1, 0])
    """
    loss, valid = mask_cross_entropy_and_valid(logits, target, label, class_weight=class_weight, on_invalid=on_invalid)
    return loss, build_counts(label.numel(), valid, on_invalid)


def mask_cross_entropy_and_valid(
    logits: Tensor, target: Tensor, label: Tensor, *, class_weight: Optional[Tensor], on_invalid: str
) -> Tuple[Tensor, Tensor]:
    """Return the loss of :func:`mask_cross_entropy`, and the number of valid labels: int64, 0-d."""
    validate_scores(logits, 'mask_pred')
    if logits.dim() < 2 or tuple(target.shape) != (logits.shape[0], *logits.shape[2:]):
        raise ValueError(
            f'expected mask target of shape (N, *) for mask_pred (N, C, *), got {format_shape(target)} for '
            f'{format_shape(logits)}'
        )
    if tuple(label.shape) != (logits.shape[0],):
        raise ValueError(f'expected label of shape ({logits.shape[0]},), one class per mask, got {format_shape(label)}')
    if label.is_floating_point():
        raise TypeError(f'label must be integer class indices, got {label.dtype}: convert with label.long()')
    channels = logits.shape[1]
    validate_class_weight(class_weight, channels, OPENMMLAB)
    sanitized = sanitize_target(label, channels, -100, on_invalid)
    own_mask = logits[torch.arange(logits.shape[0], device=logits.device), sanitized.target]
    per_instance = (-1, *[1] * (own_mask.dim() - 1))
    excluded = (~sanitized.keep).view(per_instance).expand_as(own_mask)
    target = target.to(logits.dtype).masked_fill(excluded, 0)
    loss = F.binary_cross_entropy_with_logits(
        mask_scores(own_mask, excluded),
        target,
        None if class_weight is None else class_weight.to(logits.dtype)[sanitized.target].view(per_instance),
        reduction='none' if logits.dtype in HALF_DTYPES else 'mean',
    )
    if logits.dtype in HALF_DTYPES:
        loss = loss.mean(dtype=torch.float32)
    kept = sanitized.keep.sum()
    loss = loss.masked_fill(kept == 0, 0) * correct_for_excluded(kept, label.numel(), loss.dtype)
    return loss[None], sanitized.valid
