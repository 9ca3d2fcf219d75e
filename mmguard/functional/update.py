"""Third stage of a loss, which counts the elements seen, skipped and remapped, and each invalid value."""

from __future__ import annotations

from typing import Tuple, Union

import torch
from torch import Tensor

from mmguard.labels.tally import Tally

#: Values that are counted individually: those of 8-bit maps, off-by-one labels and negative markers. Others are rare.
LOWEST, HIGHEST = -256, 1023
#: Offset of the table in the result of :data:`kernel`: kept, valid, seen, skipped and remapped come first.
TABLE_FROM = 5
#: Number of tables that are filled in parallel.
LANES = 16


def is_in_table(value: int) -> bool:
    """Return True if a value is within ``LOWEST..HIGHEST``, so that it is counted individually."""
    return LOWEST <= value <= HIGHEST


def count_values(label: Tensor) -> Tensor:
    """Count each value from ``LOWEST`` to ``HIGHEST``: int64, shape (1280,).

    Example:
        >>> count_values(torch.tensor([0, 11, -1, 11, 99999]))[-LOWEST + 11].item()
        2
    """
    label = label.detach().long().reshape(-1, label.shape[-1] if label.dim() and label.numel() else 1)
    # Values outside of the table go to a slot at either end, which is cut off.
    width = HIGHEST - LOWEST + 3
    # On a GPU additions to one address wait for each other, and most labels belong to few classes.
    lanes = torch.arange(label.shape[1], device=label.device).remainder_(LANES).mul_(width)
    slots = label.clamp(LOWEST - 1, HIGHEST + 1).add_(lanes.sub_(LOWEST - 1)).flatten()
    ones = torch.ones((), dtype=torch.int64, device=label.device).expand(slots.shape)
    empty = torch.zeros(LANES * width, dtype=torch.int64, device=label.device)
    return empty.index_add(0, slots, ones).view(LANES, width).sum(0)[1:-1]


def read_tally(counts: Tensor) -> Tally:
    """Convert counts to a ``Tally``: seen, skipped, remapped and, if the tensor is longer, a count per invalid value.

    Example:
        >>> read_tally(torch.cat((torch.tensor([6, 3, 0]), count_values(torch.tensor([11, 11])))))
        Tally(total=6, skipped=3, remapped=0, values={11: 2}, source=None, reasons={}, mapped=0, other_values=1)
    """
    total, skipped, remapped, *table = counts.tolist()
    values = {LOWEST + place: count for place, count in enumerate(table) if count}
    others = skipped + remapped - sum(values.values()) if table else 0
    return Tally(total=total, skipped=skipped, remapped=remapped, values=values, other_values=others)


def build_counts(seen: Union[int, Tensor], valid: Tensor, on_invalid: str) -> Tensor:
    """Return (seen, skipped, remapped): int64, shape (3,). Invalid elements are remapped with ``'clip'``, else skipped.

    Example:
        >>> build_counts(4, torch.tensor(3), 'ignore').tolist()
        [4, 1, 0]
    """
    invalid, none = seen - valid, torch.zeros_like(valid)
    # torch.full on the device, since a tensor from a Python number is a blocking copy on CUDA.
    total = seen if isinstance(seen, Tensor) else torch.full_like(valid, seen)
    return torch.stack((total, none, invalid) if on_invalid == 'clip' else (total, invalid, none))


def count_for_factor(is_valid: Tensor, counts_for_factor: Tensor) -> Tuple[Tensor, Tensor]:
    """Return the numbers of valid elements and of all elements that an ``avg_factor`` counts: int64, 0-d."""
    return (counts_for_factor & is_valid).sum(), counts_for_factor.sum()
