"""``torch.nn.functional.binary_cross_entropy_with_logits`` that no label can break."""

from __future__ import annotations

from typing import Literal, Optional, Tuple, Union, overload

import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.reduction import legacy_reduction, sum_float32
from mmguard.functional.sanitize import certain_where_absent, sanitize_binary_target
from mmguard.functional.target_checks import check_multilabel_target, check_pos_weight, check_reduction, check_tensors
from mmguard.labels.space import check_on_invalid


@overload
def binary_cross_entropy_with_logits(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = ...,
    size_average: Optional[bool] = ...,
    reduce: Optional[bool] = ...,
    reduction: str = ...,
    pos_weight: Optional[Tensor] = ...,
    *,
    ignore_index: Optional[float] = ...,
    on_invalid: str = ...,
    return_tally: Literal[False] = ...,
) -> Tensor: ...


@overload
def binary_cross_entropy_with_logits(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = ...,
    size_average: Optional[bool] = ...,
    reduce: Optional[bool] = ...,
    reduction: str = ...,
    pos_weight: Optional[Tensor] = ...,
    *,
    ignore_index: Optional[float] = ...,
    on_invalid: str = ...,
    return_tally: Literal[True],
) -> Tuple[Tensor, Tensor]: ...


def binary_cross_entropy_with_logits(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    reduce: Optional[bool] = None,
    reduction: str = 'mean',
    pos_weight: Optional[Tensor] = None,
    *,
    ignore_index: Optional[float] = None,
    on_invalid: str = 'ignore',
    return_tally: bool = False,
) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    r"""Compute ``torch.nn.functional.binary_cross_entropy_with_logits``; invalid targets are excluded.

    On valid targets value, gradient and dtype are PyTorch's. Targets outside [0, 1], NaN included, are excluded from
    the sum and the mean, while PyTorch trains on them (a target of 255 gives a loss without a lower bound). Nothing to
    train on gives a mean of 0 that hangs on the graph. Targets may have any dtype.

    Args:
        logits (Tensor): Scores before sigmoid, floating point, any shape, (N, C, \*) for C labels.
        target (Tensor): The shape of ``logits``, each in [0, 1] or equal to ``ignore_index``.
        weight (Tensor, optional): Weight per element, broadcast to the loss. It does not enter the mean's denominator.
        size_average, reduce (bool, optional): Deprecated in PyTorch: they override ``reduction`` and warn, as there.
        reduction (str): ``'none'``, ``'mean'`` or ``'sum'``.
        pos_weight (Tensor, optional): Weight of the positive part, broadcast along the *last* dimensions, as in
            PyTorch: for maps (N, C, H, W) write ``pos_weight.view(-1, 1, 1)``.
        ignore_index (float, optional): A target value that takes no part and is not an offence, e.g. -1 or NaN for a
            missing label. ``None``: no such value.
        on_invalid (str): ``'ignore'``, ``'clip'`` (clamped into [0, 1]) or ``'raise'`` (waits for the device).
        return_tally (bool): Return the counts, too.

    Returns:
        Tensor or tuple[Tensor, Tensor]: the loss; with ``return_tally`` also int64 counts (3,): elements seen, skipped,
        remapped.

    Raises:
        ValueError: Shapes or arguments that do not fit.
        TypeError: Dtypes that do not fit.
        LabelGuardError: An invalid target, with ``on_invalid='raise'``.

    Example:
        >>> import torch
        >>> logits = torch.zeros(1, 4, requires_grad=True)
        >>> target = torch.tensor([[0.0, 1.0, 255.0, -1.0]])
        >>> loss, counts = binary_cross_entropy_with_logits(logits, target, ignore_index=-1, return_tally=True)
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [4, 1, 0])
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_reduction(size_average, reduce)
    check_reduction(reduction)
    check_on_invalid(on_invalid)
    check_tensors(logits, target)
    check_multilabel_target(logits, target)
    check_pos_weight(logits, pos_weight)
    dtype = target.dtype if target.is_floating_point() else logits.dtype
    sanitized = sanitize_binary_target(target, dtype, ignore_index, on_invalid)
    scores = certain_where_absent(logits, sanitized.keep)
    loss = F.binary_cross_entropy_with_logits(scores, sanitized.target, weight, pos_weight=pos_weight, reduction='none')
    if reduction != 'none':
        total = sum_float32(loss)
        if reduction == 'mean':
            total = total / sanitized.keep.count_nonzero().clamp(min=1)
        loss = total.to(loss.dtype)
    return (loss, sanitized.counts) if return_tally else loss
