"""Weighting and averaging, in float32 whatever the dtype of the scores."""

from __future__ import annotations

from typing import Optional, Union

import torch
from torch import Tensor

AvgFactor = Union[float, int, Tensor]

HALF_DTYPES = (torch.float16, torch.bfloat16)

#: Both frameworks add it to the denominator, so that a factor of 0 gives 0 instead of NaN.
EPS = torch.finfo(torch.float32).eps


def translate_legacy_reduction(size_average: Optional[bool], reduce: Optional[bool]) -> str:
    """Translate PyTorch's deprecated arguments; warn as PyTorch does."""
    return torch.nn.L1Loss(size_average, reduce).reduction


def sum_float32(values: Tensor) -> Tensor:
    """Sum values; half precision is summed in float32, which does not overflow at 65504."""
    if values.dim() == 0 and values.dtype not in HALF_DTYPES:
        return values
    return values.sum(dtype=torch.float32 if values.dtype in HALF_DTYPES else None)


def reduce_loss(loss: Tensor, weight: Optional[Tensor], reduction: str, avg_factor: Optional[AvgFactor]) -> Tensor:
    """Weigh and reduce element-wise losses.

    Args:
        loss (Tensor): Element-wise losses, any shape, excluded elements 0.
        weight (Tensor, optional): Element weights, broadcastable to ``loss``.
        reduction (str): ``'none'``, ``'mean'`` or ``'sum'``.
        avg_factor (float or Tensor, optional): Divisor of ``'mean'``; required there.

    Raises:
        ValueError: An ``avg_factor`` together with ``'sum'``, as in both frameworks; an unknown reduction.
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
    assert avg_factor is not None
    return sum_float32(loss) / (avg_factor + EPS)


def scale_avg_factor(avg_factor: AvgFactor, kept: Tensor, counted: Tensor) -> Tensor:
    """Remove invalid elements from a caller's averaging factor, as far as a single call can infer how it was computed.

    - A factor of at least ``counted`` was added up over several calls (RetinaNet calls once per level): what was
      skipped here is subtracted.
    - A smaller one was averaged over ranks, or chosen by hand: it is multiplied by ``kept / counted``.
    - One that equals ``kept`` never contained them (FCOS counts the labels that are classes): it stays.

    The result never falls below ``min(avg_factor, 1)``.

    Args:
        avg_factor (float or Tensor): The caller's factor.
        kept (Tensor): 0-d, valid elements among the counted.
        counted (Tensor): 0-d, number of elements that such a factor counts.

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
