"""Which values labels have: a table of fixed size on the device, which nobody waits for."""

from __future__ import annotations

import torch
from torch import Tensor

from mmguard.labels.tally import Tally

#: The values that are counted one by one: what 8-bit maps, off-by-one labels and negative marks bring. Others are few.
LOWEST, HIGHEST = -256, 1023
#: Tables that are filled side by side.
LANES = 16


def in_table(value: int) -> bool:
    """Whether a value is counted one by one."""
    return LOWEST <= value <= HIGHEST


def count_values(label: Tensor) -> Tensor:
    """How often each value from ``LOWEST`` to ``HIGHEST`` occurs: int64, shape (1280,).

    Example:
        >>> count_values(torch.tensor([0, 11, -1, 11, 99999]))[-LOWEST + 11].item()
        2
    """
    label = label.detach().long().reshape(-1, label.shape[-1] if label.dim() and label.numel() else 1)
    # Values outside of the table meet in a slot at either end, which is cut off.
    width = HIGHEST - LOWEST + 3
    # On a GPU additions to one address wait for each other, and most labels are of few classes.
    lanes = torch.arange(label.shape[1], device=label.device).remainder_(LANES).mul_(width)
    slots = label.clamp(LOWEST - 1, HIGHEST + 1).add_(lanes.sub_(LOWEST - 1)).flatten()
    ones = torch.ones((), dtype=torch.int64, device=label.device).expand(slots.shape)
    empty = torch.zeros(LANES * width, dtype=torch.int64, device=label.device)
    return empty.index_add(0, slots, ones).view(LANES, width).sum(0)[1:-1]


def read_tally(counts: Tensor) -> Tally:
    """Running counts: elements seen, skipped and remapped, and behind them the table of invalid values, if any.

    Example:
        >>> read_tally(torch.cat((torch.tensor([6, 3, 0]), count_values(torch.tensor([11, 11])))))
        Tally(total=6, skipped=3, remapped=0, values={11: 2}, source=None, reasons={}, mapped=0, other_values=1)
    """
    total, skipped, remapped, *table = counts.tolist()
    values = {LOWEST + place: count for place, count in enumerate(table) if count}
    others = skipped + remapped - sum(values.values()) if table else 0
    return Tally(total=total, skipped=skipped, remapped=remapped, values=values, other_values=others)
