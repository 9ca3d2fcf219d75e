"""Binary cross entropy of per-class instance masks that no class label can break."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.checks import check_class_weight, check_scores, shape_of
from mmguard.functional.reduction import EPS, sum_float32
from mmguard.functional.sanitize import certain_where_absent, sanitize_target


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
    check_scores(logits, 'mask_pred')
    if logits.dim() < 2 or tuple(target.shape) != (logits.shape[0], *logits.shape[2:]):
        raise ValueError(
            f'mask target has shape {shape_of(target)}, mask_pred {shape_of(logits)}: a target mask must have the '
            f'shape (N, *) of a prediction (N, C, *)'
        )
    if tuple(label.shape) != (logits.shape[0],):
        raise ValueError(f'label has shape {shape_of(label)}: one class per mask is needed, ({logits.shape[0]},)')
    if label.is_floating_point():
        raise TypeError(f'label must be integer class indices, got {label.dtype}: convert with label.long()')
    channels = logits.shape[1]
    check_class_weight(class_weight, channels)
    sanitized = sanitize_target(label, channels, -100, on_invalid)
    own_mask = logits[torch.arange(logits.shape[0], device=logits.device), sanitized.target]
    per_instance = (-1, *[1] * (own_mask.dim() - 1))
    keep = sanitized.keep.view(per_instance).expand_as(own_mask)
    target = target.to(logits.dtype).masked_fill(~keep, 0)
    loss = F.binary_cross_entropy_with_logits(certain_where_absent(own_mask, keep), target, reduction='none')
    if class_weight is not None:
        loss = loss * class_weight.to(loss.dtype)[sanitized.target].view(per_instance)
    return (sum_float32(loss) / (keep.sum(dtype=torch.float32) + EPS))[None], sanitized.counts
