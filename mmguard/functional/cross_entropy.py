"""Cross entropies that exclude invalid labels, with the signatures of ``torch.nn.functional``."""

from __future__ import annotations

from typing import Literal, Optional, Tuple, Union, overload

import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.compute import HALF_DTYPES, correct_for_excluded, sum_float32, translate_legacy_reduction
from mmguard.functional.format import mask_scores, sanitize_binary_target, sanitize_class_target
from mmguard.functional.soft import compute_soft_loss, sanitize_distributions
from mmguard.functional.update import HIGHEST, LOWEST, build_counts
from mmguard.functional.validate import (
    get_class_dim,
    get_num_classes,
    holds_probabilities,
    validate_class_target,
    validate_class_weight,
    validate_dense_target,
    validate_label_smoothing,
    validate_pos_weight,
    validate_probability_target,
    validate_reduction,
    validate_tensors,
)
from mmguard.labels.rules import check_int, check_on_invalid


@overload
def cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = ...,
    size_average: Optional[bool] = ...,
    ignore_index: int = ...,
    reduce: Optional[bool] = ...,
    reduction: str = ...,
    label_smoothing: float = ...,
    *,
    on_invalid: str = ...,
    return_tally: Literal[False] = ...,
) -> Tensor: ...


@overload
def cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = ...,
    size_average: Optional[bool] = ...,
    ignore_index: int = ...,
    reduce: Optional[bool] = ...,
    reduction: str = ...,
    label_smoothing: float = ...,
    *,
    on_invalid: str = ...,
    return_tally: Literal[True],
) -> Tuple[Tensor, Tensor]: ...


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    size_average: Optional[bool] = None,
    ignore_index: int = -100,
    reduce: Optional[bool] = None,
    reduction: str = 'mean',
    label_smoothing: float = 0.0,
    *,
    on_invalid: str = 'ignore',
    return_tally: bool = False,
) -> Union[Tensor, Tuple[Tensor, Tensor]]:
    r"""Compute ``torch.nn.functional.cross_entropy`` without invalid targets.

    For valid targets, value, gradient and dtype are those of PyTorch in every mode. Intended differences:

    - a target that is neither a class nor ``ignore_index`` is excluded from the sum and the mean (PyTorch: IndexError,
      on a GPU a device-side assert);
    - if there is nothing to train on (all ignored, all invalid, no element at all, or class weights that add up to 0),
      the mean is 0 and attached to the graph, with gradient 0 (PyTorch: NaN);
    - half precision is added up and averaged in float32;
    - class indices may have any integer dtype, or be bool.

    Args:
        logits (Tensor): Scores before softmax, floating point, shape (C), (N, C) or (N, C, d1, ..., dK).
        target (Tensor): Class indices, shape (), (N) or (N, d1, ..., dK), any integer dtype; or probabilities, floating
            point, the shape of ``logits``. Probabilities are valid where the row of an element is finite, not
            negative and adds up to 1 within :data:`~mmguard.functional.soft.SUM_TOLERANCE`.
        weight (Tensor, optional): Weight per class, shape (C), dtype of ``logits``.
        size_average, reduce (bool, optional): Deprecated in PyTorch, and kept for positional calls: they override
            ``reduction`` and warn, as in PyTorch.
        ignore_index (int): The class index that is excluded. Must be negative for probabilities.
        reduction (str): ``'none'``, ``'mean'`` or ``'sum'``.
        label_smoothing (float): In [0, 1]: share of the uniform distribution that is mixed into the target.
        on_invalid (str): ``'ignore'`` (excluded), ``'clip'`` (indices are clamped into the classes, rows of
            probabilities clamped and divided by their sum) or ``'raise'`` (``LabelGuardError``; waits for the device).
        return_tally (bool): Also return the counts.

    Returns:
        Tensor or tuple[Tensor, Tensor]: the loss; with ``return_tally`` also int64 counts (3,) on the device of the
        target: elements seen, skipped, remapped. Add the counts of batches and ranks to merge them. Reading counts,
        ``mmguard.Tally(*counts.tolist())``, waits for the device: do it only occasionally.

    Raises:
        ValueError: Shapes or arguments that do not fit.
        TypeError: Dtypes that do not fit. Both errors are also a ``RuntimeError`` where PyTorch raises one.
        LabelGuardError: A target is invalid, and ``on_invalid`` is ``'raise'``.

    Example:
        >>> import torch
        >>> logits = torch.zeros(3, 2, requires_grad=True)
        >>> loss, counts = cross_entropy(logits, torch.tensor([0, 19, 1]), return_tally=True)
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [3, 1, 0])
    """
    if size_average is not None or reduce is not None:
        reduction = translate_legacy_reduction(size_average, reduce)
    loss, counts = cross_entropy_and_counts(
        logits, target, weight, ignore_index, reduction, label_smoothing, on_invalid, return_tally
    )
    return loss if counts is None else (loss, counts[:3])


def cross_entropy_and_counts(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor],
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    on_invalid: str,
    counted: bool = True,
) -> Tuple[Tensor, Optional[Tensor]]:
    """Return the loss of :func:`cross_entropy`, and the counts for :func:`~mmguard.functional.update.read_tally`."""
    validate_reduction(reduction)
    check_on_invalid(on_invalid)
    check_int('ignore_index', ignore_index)
    validate_tensors(logits, target)
    validate_label_smoothing(label_smoothing)
    if holds_probabilities(logits, target):
        validate_probability_target(logits, target, ignore_index)
        return _compute_probability_loss(logits, target, weight, reduction, label_smoothing, on_invalid, counted)
    validate_class_target(logits, target)
    classes = get_num_classes(logits)
    validate_class_weight(weight, classes)
    sanitized = sanitize_class_target(target, classes, ignore_index, on_invalid)
    counts = None
    if counted:
        kept, counts = sanitized.count_by_value()
    elif weight is None:  # otherwise not needed, and counting costs a pass over the labels
        kept = sanitized.count_kept()
    index, nothing = sanitized.target, None
    if reduction == 'mean':  # PyTorch's mean of nothing is NaN, and so are its gradients if all weights are 0
        nothing = kept == 0 if weight is None else sanitized.look_up_weights(weight).count_nonzero() == 0
        index = index if weight is None else index.masked_fill(nothing, classes)
    # PyTorch adds up half precision in half precision, where a count of 65,520 is infinite.
    half = logits.dtype in HALF_DTYPES
    loss = F.cross_entropy(
        logits,
        index,
        weight,
        ignore_index=classes,
        reduction='none' if half else reduction,
        label_smoothing=label_smoothing,
    )
    if half and reduction != 'none':
        total = sum_float32(loss)
        if reduction == 'mean':
            total = total / (kept if weight is None else sum_float32(sanitized.look_up_weights(weight.flatten())))
        loss = total.to(loss.dtype)
    return loss if nothing is None else loss.masked_fill(nothing, 0), counts


def _compute_probability_loss(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor],
    reduction: str,
    label_smoothing: float,
    on_invalid: str,
    counted: bool,
) -> Tuple[Tensor, Optional[Tensor]]:
    validate_class_weight(weight, get_num_classes(logits))
    sanitized = sanitize_distributions(target, get_class_dim(logits), on_invalid)
    # Probabilities have no integer values, so the table of invalid values stays empty.
    counts = F.pad(sanitized.counts, (0, HIGHEST - LOWEST + 1)) if counted else None
    half = logits.dtype in HALF_DTYPES
    loss = compute_soft_loss(logits, sanitized, weight, label_smoothing, 'none' if half else reduction)
    return _reduce_dense(loss, half, sanitized.excluded, reduction), counts


def _reduce_dense(loss: Tensor, per_element: bool, excluded: Tensor, reduction: str) -> Tensor:
    """Reduce the loss in float32 if it is ``per_element``; correct a mean so that excluded elements do not count."""
    total, dtype, seen = loss, loss.dtype, excluded.numel()
    if per_element and reduction != 'none':
        total = sum_float32(loss)
        total = total / max(seen, 1) if reduction == 'mean' else total
    if reduction == 'mean':
        kept = seen - excluded.sum()
        total = total.masked_fill(kept == 0, 0) * correct_for_excluded(kept, seen, total.dtype)
    return total.to(dtype)


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
    r"""Compute ``torch.nn.functional.binary_cross_entropy_with_logits`` without invalid targets.

    For valid targets, value, gradient and dtype are those of PyTorch. Targets outside [0, 1], NaN included, are
    excluded from the sum and the mean, while PyTorch trains on them (a target of 255 gives a loss without a lower
    bound). If no element is left to train on, the mean is 0 and attached to the graph. Targets may have any dtype.

    Args:
        logits (Tensor): Scores before sigmoid, floating point, any shape, (N, C, \*) for C labels.
        target (Tensor): The shape of ``logits``, each in [0, 1] or equal to ``ignore_index``.
        weight (Tensor, optional): Weight per element, broadcast to the loss. It does not enter the mean's denominator.
        size_average, reduce (bool, optional): Deprecated in PyTorch: they override ``reduction`` and warn.
        reduction (str): ``'none'``, ``'mean'`` or ``'sum'``.
        pos_weight (Tensor, optional): Weight of the positive part, broadcast along the *last* dimensions, as in
            PyTorch: for maps (N, C, H, W) write ``pos_weight.view(-1, 1, 1)``.
        ignore_index (float, optional): A target value that is excluded but not invalid, e.g. -1 or NaN for a
            missing label. If ``None``, no value is excluded.
        on_invalid (str): ``'ignore'``, ``'clip'`` (clamped into [0, 1]) or ``'raise'`` (waits for the device).
        return_tally (bool): Also return the counts.

    Returns:
        Tensor or tuple[Tensor, Tensor]: the loss; with ``return_tally`` also the counts, see :func:`cross_entropy`.

    Raises:
        ValueError: Shapes or arguments that do not fit.
        TypeError: Dtypes that do not fit.
        LabelGuardError: A target is invalid, and ``on_invalid`` is ``'raise'``.

    Example:
        >>> import torch
        >>> logits = torch.zeros(1, 4, requires_grad=True)
        >>> target = torch.tensor([[0.0, 1.0, 255.0, -1.0]])
        >>> loss, counts = binary_cross_entropy_with_logits(logits, target, ignore_index=-1, return_tally=True)
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [4, 1, 0])
    """
    if size_average is not None or reduce is not None:
        reduction = translate_legacy_reduction(size_average, reduce)
    validate_reduction(reduction)
    check_on_invalid(on_invalid)
    validate_tensors(logits, target)
    validate_dense_target(logits, target)
    validate_pos_weight(logits, pos_weight)
    dtype = target.dtype if target.is_floating_point() else logits.dtype
    sanitized = sanitize_binary_target(target, dtype, ignore_index, on_invalid)
    scores = mask_scores(logits, sanitized.excluded)
    half = logits.dtype in HALF_DTYPES
    inner = 'none' if half else reduction
    loss = F.binary_cross_entropy_with_logits(scores, sanitized.target, weight, pos_weight=pos_weight, reduction=inner)
    loss = _reduce_dense(loss, half, sanitized.excluded, reduction)
    return (loss, build_counts(target.numel(), sanitized.valid, on_invalid)) if return_tally else loss
