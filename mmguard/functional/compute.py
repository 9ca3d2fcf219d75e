"""Last stage of a loss, which weights and averages its elements and sums half precision in float32."""

from __future__ import annotations

from typing import Optional, Union

import torch
from torch import Tensor

AvgFactor = Union[float, int, Tensor]

HALF_DTYPES = (torch.float16, torch.bfloat16)

#: mmseg and mmdet add this to the denominator, so that a factor of 0 gives 0 instead of NaN.
EPS = torch.finfo(torch.float32).eps


def translate_legacy_reduction(size_average: Optional[bool], reduce: Optional[bool]) -> str:
    """Return the ``reduction`` for PyTorch's deprecated ``size_average`` and ``reduce``; warn as PyTorch does."""
    return torch.nn.L1Loss(size_average, reduce).reduction


def sum_float32(values: Tensor) -> Tensor:
    """Sum values, in float32 if they have half precision, because float16 overflows above 65504."""
    if values.dim() == 0 and values.dtype not in HALF_DTYPES:
        return values
    return values.sum(dtype=torch.float32 if values.dtype in HALF_DTYPES else None)


def reduce_loss(loss: Tensor, weight: Optional[Tensor], reduction: str, avg_factor: Optional[AvgFactor]) -> Tensor:
    """Weigh and reduce element-wise losses, with results equal bit for bit to those of mmseg and mmdet.

    The losses of excluded elements must be 0. A mean without ``avg_factor`` is divided by the number of all elements.

    Raises:
        ValueError: ``avg_factor`` is given with ``'sum'`` (mmseg and mmdet raise, too), or the reduction is unknown.
    """
    if reduction not in ('none', 'mean', 'sum'):
        raise ValueError(f"{reduction} is not a valid value for reduction: use 'none', 'mean' or 'sum'")
    if weight is not None:
        loss = loss * weight.float()
    if reduction == 'none':
        return loss
    if reduction == 'sum':
        if avg_factor is not None:
            raise ValueError('avg_factor can not be used with reduction="sum"')
        return sum_float32(loss)
    # A Python number is added to EPS in float64, as in both frameworks, and rounded once.
    return sum_float32(loss) / (max(loss.numel(), 1) if avg_factor is None else avg_factor + EPS)


def scale_avg_factor(avg_factor: AvgFactor, kept: Tensor, counted: Tensor) -> Tensor:
    """Exclude invalid elements from ``avg_factor``; infer from its value how the caller computed it.

    ``counted`` (0-d) is the number of this call's elements that the factor counts; ``kept`` (0-d) of these are valid.

    - A factor >= ``counted`` was summed over several calls (RetinaNet calls once per level): subtract invalid elements.
    - A smaller factor was averaged over ranks, or chosen by hand: multiply it by ``kept / counted``.
    - A factor equal to ``kept`` never counted invalid elements (FCOS counts labels that are classes): do not change it.

    The result never falls below ``min(avg_factor, 1)``.

    Example:
        >>> scale_avg_factor(100, torch.tensor(1), torch.tensor(4))
        tensor(97.)
        >>> scale_avg_factor(2, torch.tensor(1), torch.tensor(4))
        tensor(1.)
    """
    if isinstance(avg_factor, Tensor) and avg_factor.dtype in HALF_DTYPES:
        avg_factor = avg_factor.float()
    # Few operations, since on a GPU each of them takes longer to launch than to run.
    skipped = (counted - kept).masked_fill(kept == avg_factor, 0)
    left = avg_factor - skipped * (avg_factor / counted.clamp(min=1)).clamp(max=1)
    if isinstance(avg_factor, Tensor):
        return torch.maximum(left, avg_factor.clamp(max=1))
    return left.clamp(min=min(avg_factor, 1))


def correct_mean(avg_factor: AvgFactor, kept: Tensor, counted: Tensor) -> Tensor:
    """Return the ratio that corrects a mean divided by ``avg_factor``: ``avg_factor`` / :func:`scale_avg_factor`.

    Without invalid elements the ratio is exactly 1, so that the framework's mean does not change.

    Example:
        >>> correct_mean(2.7, torch.tensor(4), torch.tensor(4)), correct_mean(100, torch.tensor(1), torch.tensor(4))
        (tensor(1.), tensor(1.0309))
    """
    ratio = (avg_factor + EPS) / (scale_avg_factor(avg_factor, kept, counted) + EPS)
    return ratio.masked_fill(kept == counted, 1)


def correct_for_excluded(kept: Tensor, seen: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the ratio that turns a mean in which excluded elements have loss 0 into a mean without them.

    Without excluded elements the ratio is exactly 1.

    Example:
        >>> correct_for_excluded(torch.tensor(49), 49), correct_for_excluded(torch.tensor(2), 4)
        (tensor(1.), tensor(2.))
    """
    return torch.full_like(kept, seen, dtype=dtype) / kept.clamp(min=1)
