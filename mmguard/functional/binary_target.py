"""Sanitizing of dense binary targets: one yes or no, or a share of it, per score."""

from __future__ import annotations

import math
from typing import NamedTuple, Optional

import torch
from torch import Tensor

from mmguard.functional.sanitize import count, raise_if_outside_unit

#: The sigmoid of it is exactly 1, that of its negative exactly 0, in every dtype.
CERTAIN = 1e4


class BinaryTarget(NamedTuple):
    """What ``sanitize_binary_target`` returns; all have the shape of the input.

    Attributes:
        target (Tensor): In [0, 1], the dtype asked for; 0 for what takes no part.
        keep (Tensor): bool: takes part in the loss.
        invalid (Tensor): bool: was neither in [0, 1] nor ``ignore_index``.
        ignored (Tensor): bool: equal to ``ignore_index``.
        counts (Tensor): int64, shape (3,): elements seen, skipped and remapped.
    """

    target: Tensor
    keep: Tensor
    invalid: Tensor
    ignored: Tensor
    counts: Tensor


def sanitize_binary_target(
    target: Tensor, dtype: torch.dtype, ignore_index: Optional[float], on_invalid: str
) -> BinaryTarget:
    """Takes out what is neither in [0, 1] (up to rounding) nor ignored; NaN included.

    Args:
        target (Tensor): Any dtype.
        dtype (torch.dtype): What the sanitized target is to be.
        ignore_index (float, optional): The value that takes no part; it may be NaN. ``None``: there is none.
        on_invalid (str): ``'ignore'``, ``'clip'`` (clamped; NaN becomes 0) or ``'raise'`` (which synchronises).

    Raises:
        LabelGuardError: An invalid target, with ``on_invalid='raise'``.

    Example:
        >>> sanitized = sanitize_binary_target(torch.tensor([0.0, 1.0, 255.0, -1.0]), torch.float32, -1, 'ignore')
        >>> sanitized.target.tolist(), sanitized.keep.tolist(), sanitized.counts.tolist()
        ([0.0, 1.0, 0.0, 0.0], [True, True, False, False], [4, 1, 0])
    """
    if ignore_index is None:
        ignored = torch.zeros_like(target, dtype=torch.bool)
    else:
        ignored = target.isnan() if math.isnan(ignore_index) else target == ignore_index
    # Soft targets (IoU, sampled masks) may exceed 1 by rounding. NaN fails both comparisons.
    highest = 1 + 4 * torch.finfo(target.dtype).eps if target.is_floating_point() else 1
    invalid = ~((target >= 0) & (target <= highest)) & ~ignored
    if on_invalid == 'raise':
        raise_if_outside_unit(target, invalid)
    values, keep = target.to(dtype), ~(invalid | ignored)
    if on_invalid == 'clip':
        values, keep = torch.where(invalid, values.nan_to_num(0.0).clamp(0, 1), values), ~ignored
    return BinaryTarget(values.masked_fill(~keep, 0), keep, invalid, ignored, count(invalid, on_invalid))


def certain_where_absent(logits: Tensor, keep: Tensor) -> Tensor:
    """The scores, and beside a target of 0 a certain no where an element takes no part.

    The binary cross entropy of that is exactly 0, and so is its gradient, whatever the scores hold.
    """
    return logits.masked_fill(~keep, -CERTAIN)
