"""``torch.nn.functional.cross_entropy`` that no label can break."""

from __future__ import annotations

from math import inf, prod
from typing import Literal, Optional, Tuple, Union, overload

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import _reduction

from mmguard.functional.class_target import mend_class_target
from mmguard.functional.distributions import mend_distributions
from mmguard.functional.nll import HALF
from mmguard.functional.reduction import sum_float32
from mmguard.functional.soft import soft_elements
from mmguard.functional.target_checks import (
    check_class_target,
    check_label_smoothing,
    check_loss_weight,
    check_probability_target,
    check_reduction,
    check_tensors,
    class_dim,
    holds_probabilities,
    number_of_classes,
)
from mmguard.labels import check_int, check_on_invalid

_SUM = _reduction.get_enum('sum')
#: Whole numbers below it are floats without a gap.
_WHOLE_FLOATS = 1 << 24


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
    r"""``torch.nn.functional.cross_entropy``; invalid targets count as absent.

    On valid targets value, gradient and dtype are PyTorch's, in every mode. Where the two differ on purpose:

    - a target that is neither a class nor ``ignore_index`` is left out of the sum and of the mean (PyTorch: IndexError,
      on a GPU a device-side assert);
    - nothing to train on (all ignored, all invalid, no element at all, or class weights that add up to 0) gives a mean
      of 0 that hangs on the graph, with gradient 0 (PyTorch: NaN);
    - half precision is added up and averaged in float32;
    - class indices may have any integer dtype, or be bool.

    Args:
        logits (Tensor): Scores before softmax, floating point, shape (C), (N, C) or (N, C, d1, ..., dK).
        target (Tensor): Class indices, shape (), (N) or (N, d1, ..., dK), any integer dtype; or probabilities, floating
            point, the shape of ``logits``. Probabilities are valid where the row of an element is finite, not
            negative and adds up to 1 within :data:`~mmguard.functional.distributions.SUM_TOLERANCE`.
        weight (Tensor, optional): Weight per class, shape (C), dtype of ``logits``.
        size_average, reduce (bool, optional): Deprecated in PyTorch, and kept for calls by position: they override
            ``reduction`` and warn, as there.
        ignore_index (int): The class index that takes no part. Not with probabilities.
        reduction (str): ``'none'``, ``'mean'`` or ``'sum'``.
        label_smoothing (float): In [0, 1]: share of the uniform distribution that is mixed into the target.
        on_invalid (str): ``'ignore'`` (left out), ``'clip'`` (indices are clamped into the classes, rows of
            probabilities clamped and divided by their sum) or ``'raise'`` (``LabelGuardError``; waits for the device).
        return_tally (bool): Whether to return the counts, too.

    Returns:
        Tensor or tuple[Tensor, Tensor]: the loss; with ``return_tally`` also int64 counts (3,) on the device of the
        target: elements seen, skipped, remapped. Those of batches and ranks are merged by adding them up. Reading
        them, ``mmguard.Tally(*counts.tolist())``, waits for the device: do it once in a while.

    Raises:
        ValueError: Shapes or arguments that do not fit.
        TypeError: Dtypes that do not fit. (Both are also a ``RuntimeError``, where PyTorch raises one.)
        LabelGuardError: An invalid target, with ``on_invalid='raise'``.

    Example:
        >>> import torch
        >>> logits = torch.zeros(3, 2, requires_grad=True)
        >>> loss, counts = cross_entropy(logits, torch.tensor([0, 19, 1]), return_tally=True)
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [3, 1, 0])
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    check_reduction(reduction)
    check_on_invalid(on_invalid)
    check_int('ignore_index', ignore_index)
    check_tensors(logits, target)
    check_label_smoothing(label_smoothing)
    given = (logits, target, weight, ignore_index, reduction, label_smoothing, on_invalid, return_tally)
    loss, counts = _of_probabilities(*given) if holds_probabilities(logits, target) else _of_classes(*given)
    return loss if counts is None else (loss, counts)


def _of_classes(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor],
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    on_invalid: str,
    counted: bool,
) -> Tuple[Tensor, Optional[Tensor]]:
    check_class_target(logits, target)
    check_loss_weight(logits, weight)
    classes = number_of_classes(logits)
    mended = mend_class_target(target, classes, ignore_index, on_invalid)
    if reduction == 'mean' and not label_smoothing and logits.dtype not in HALF:
        loss, denominator = _mean(logits, mended.target, weight)
        exact = weight is None and target.numel() < _WHOLE_FLOATS
        return loss, mended.counts(denominator if exact else None) if counted else None
    # The mean is taken here: PyTorch's is NaN where nothing is kept, and adds up in half precision, where a count of
    # 65,520 is infinite. Its sum beyond half precision has neither fault.
    inner = 'none' if reduction == 'none' or logits.dtype in HALF else 'sum'
    loss = F.cross_entropy(
        logits, mended.target, weight, ignore_index=classes, reduction=inner, label_smoothing=label_smoothing
    )
    counts = mended.counts() if counted else None
    if reduction == 'none':
        return loss, counts
    total = loss if inner == 'sum' else sum_float32(loss)
    if reduction == 'mean':
        total = total / (mended.kept().clamp(min=1) if weight is None else _weight_of(mended.target, weight))
    return total.to(loss.dtype), counts


def _mean(logits: Tensor, target: Tensor, weight: Optional[Tensor]) -> Tuple[Tensor, Tensor]:
    """``F.cross_entropy``'s two steps; the second one gives the denominator along, which saves passes over labels."""
    scores = torch.log_softmax(logits, class_dim(logits))
    nll_loss = torch.ops.aten.nll_loss_forward.default
    if logits.dim() > 2:
        nll_loss = torch.ops.aten.nll_loss2d_forward.default
        if logits.dim() != 4:  # for the kernel any number of spatial dimensions is one image
            size = prod(target.shape[1:])
            scores, target = scores.reshape(*logits.shape[:2], 1, size), target.reshape(target.shape[0], 1, size)
    total, denominator = nll_loss(scores, target, weight, _SUM, number_of_classes(logits))
    # Infinite instead of 0: then nothing is 0 and not NaN, and so is its gradient. Class weights may be negative.
    by = F.threshold(denominator, 0, inf) if weight is None else denominator.masked_fill(denominator == 0, inf)
    return total / by, denominator


def _of_probabilities(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor],
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    on_invalid: str,
    counted: bool,
) -> Tuple[Tensor, Optional[Tensor]]:
    check_probability_target(logits, target, ignore_index)
    check_loss_weight(logits, weight)
    mended = mend_distributions(target, class_dim(logits), on_invalid)
    counts = mended.counts if counted else None
    loss = soft_elements(logits, mended, weight, label_smoothing)
    if reduction == 'none':
        return loss, counts
    total = sum_float32(loss)
    if reduction == 'mean':  # PyTorch's rule: class weights do not enter the denominator of probabilities
        total = total / mended.keep.count_nonzero().clamp(min=1)
    return total.to(loss.dtype), counts


def _weight_of(target: Tensor, weight: Tensor) -> Tensor:
    """What the elements that take part weigh together; infinite instead of 0, by which the mean is 0 and not NaN."""
    padded = F.pad(weight.detach().flatten(), (0, 1))  # what takes no part is in the class behind the last
    total = sum_float32(padded.index_select(0, target.flatten()))
    return total.masked_fill(total == 0, float('inf'))
