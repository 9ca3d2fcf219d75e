"""Binary cross entropies of sigmoid scores and instance masks, robust against any label."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.checks import (
    check_class_weight,
    check_dense_target,
    check_dense_weight,
    check_index_target,
    check_scores,
    check_weight,
    format_shape,
)
from mmguard.functional.reduction import HALF_DTYPES, AvgFactor, correct_for_excluded, correct_mean, reduce_loss
from mmguard.functional.sanitize import (
    BinaryTarget,
    build_counts,
    count_for_factor,
    mask_scores,
    sanitize_binary_target,
    sanitize_target,
)


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

    Class indices become one-hot rows; with ``background`` the label C is valid and its row is all zeros (mmdet).
    Dense targets are valid in [0, 1] (up to rounding); others, NaN included, are invalid. The mean is taken over
    all N x C elements except those of invalid labels, and over those of ignored labels too unless ``avg_non_ignore``.

    Args:
        logits (Tensor): Shape (N, C, \*) for class indices, any shape for dense targets.
        target (Tensor): Class indices (N, \*) of an integer dtype, or dense targets of the shape of ``logits``.
        weight (Tensor, optional): Element weights, the shape of ``target`` (sizes of 1 are broadcast); of dense targets
            any shape that can be broadcast with theirs.
        class_weight (Tensor, optional): Weight of the positive targets per channel, shape (C,).
        reduction (str): ``'none'`` (returns the shape of ``logits``), ``'mean'`` or ``'sum'``.
        avg_factor (float or Tensor, optional): Denominator of ``'mean'``; invalid elements leave it
            (:func:`~mmguard.functional.scale_avg_factor`).
        ignore_index (int): The label to ignore.
        avg_non_ignore (bool): Exclude ignored elements from the denominator.
        background (bool): True if the label C is a valid one, the background.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.

    Returns:
        tuple[Tensor, Tensor]: the loss, and int64 counts (3,): label elements seen, skipped, remapped.

    Raises:
        ValueError: Shapes that do not fit; ``avg_factor`` with ``'sum'``.
        TypeError: Scores that are not floating point, class indices that are.
        LabelGuardError: An invalid label, with ``on_invalid='raise'``.

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
    """Compute :func:`sigmoid_cross_entropy`, and return the number of valid elements instead of the counts."""
    dense = logits.dim() == target.dim()
    if dense:
        check_dense_target(logits, target)
        binary, excluded, is_valid, valid, ignored = sanitize_binary_target(
            target, logits.dtype, ignore_index, on_invalid
        )
    else:
        check_index_target(logits, target)
        binary, excluded, is_valid, valid, ignored = _build_one_hot(
            logits, target, ignore_index, background, on_invalid
        )
        if weight is not None and weight.dim() == logits.dim() and weight.shape[1] == 1:
            weight = weight.squeeze(1)
    (check_dense_weight if dense else check_weight)(weight, target)
    element_weight = weight if dense or weight is None or weight.dim() == 0 else weight.unsqueeze(1)
    loss = F.binary_cross_entropy_with_logits(
        mask_scores(logits, excluded if dense else excluded.unsqueeze(1)),
        binary,
        pos_weight=_reshape_pos_weight(class_weight, logits, dense),
        reduction='none',
    )
    correction = None  # of a mean that counts invalid elements; exactly 1 without them
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
    """Reshape weights, if any, to broadcast along the channels, not along the last (spatial) dimension."""
    if class_weight is None:
        return None
    class_weight = class_weight.to(logits.dtype)
    if class_weight.numel() == 1:
        return class_weight
    # Dense targets (N, C), or (B, N, C) as in DETR-like heads, have their channels last.
    channel_dim = logits.dim() - 1 if dense and logits.dim() < 4 else 1
    check_class_weight(class_weight, logits.shape[channel_dim])
    return class_weight.view(-1, *[1] * (logits.dim() - 1 - channel_dim))


def mask_cross_entropy(
    logits: Tensor, target: Tensor, label: Tensor, *, class_weight: Optional[Tensor] = None, on_invalid: str = 'ignore'
) -> Tuple[Tensor, Tensor]:
    r"""Compute the mean binary cross entropy between the mask of each instance's class and its target mask.

    An instance whose label is not a class is excluded from the sum and the mean.

    Args:
        logits (Tensor): Shape (N, C, \*): one mask per instance and class.
        target (Tensor): Shape (N, \*): target masks, floating point or bool, in [0, 1].
        label (Tensor): Shape (N,): the class of each instance, an integer dtype.
        class_weight (Tensor, optional): Weight per class, shape (C,).
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.

    Returns:
        tuple[Tensor, Tensor]: the loss, shape (1,) as in both frameworks (0 without instances, where theirs is NaN),
        and int64 counts (3,): instances seen, skipped, remapped.

    Raises:
        ValueError: Shapes that do not fit.
        TypeError: Scores that are not floating point, labels that are.
        LabelGuardError: An invalid label, with ``on_invalid='raise'``.

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
    """Compute :func:`mask_cross_entropy`, and return the number of valid labels instead of the counts."""
    check_scores(logits, 'mask_pred')
    if logits.dim() < 2 or tuple(target.shape) != (logits.shape[0], *logits.shape[2:]):
        raise ValueError(
            f'expected mask target of shape (N, *) for mask_pred (N, C, *), got {format_shape(target)} for '
            f'{format_shape(logits)}'
        )
    if tuple(label.shape) != (logits.shape[0],):
        raise ValueError(f'label has shape {format_shape(label)}: one class per mask is needed, ({logits.shape[0]},)')
    if label.is_floating_point():
        raise TypeError(f'label must be integer class indices, got {label.dtype}: convert with label.long()')
    channels = logits.shape[1]
    check_class_weight(class_weight, channels)
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
