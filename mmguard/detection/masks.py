"""Masks of a detector's targets: whether they have the size of their image, and hold a pixel."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor

from mmguard.detection.fields import Target


def other_size(targets: Sequence[Target], sizes: Optional[List[Tuple[int, int]]], padded: bool) -> str:
    """The first masks of another size than their image, in words; empty where there are none.

    Shapes alone are compared, so it costs no synchronisation. Masks that are smaller by a whole number are meant so.

    Args:
        targets (list[dict]): Checked ones.
        sizes (list[tuple[int, int]], optional): Height and width of each image.
        padded (bool): Images were put into one tensor: they may be larger than their masks.
    """
    for place, (target, size) in enumerate(zip(targets, sizes or ())):
        masks = _drawn(target)
        if masks is None:
            continue
        height, width = masks.shape[1:]
        fits = height <= size[0] and width <= size[1] if padded else _is_part(height, width, size)
        if not fits:
            return f"targets[{place}]['masks'] are {height} x {width}, their image {size[0]} x {size[1]}"
    return ''


def _is_part(height: int, width: int, size: Tuple[int, int]) -> bool:
    """Whether an image is as many times as high as it is as wide, a whole number of times."""
    times = max(size[0] // max(height, 1), 1)
    return (times * height, times * width) == size


def count_empty_masks(targets: Sequence[Target]) -> List[int]:
    """Of each target how many masks hold no pixel, brought to the host in one copy."""
    drawn = [_drawn(target) for target in targets]
    if all(masks is None for masks in drawn):
        return [0] * len(targets)
    counts = [torch.zeros((), dtype=torch.int64) if one is None else (~_any_pixel(one)).sum() for one in drawn]
    device = next(one.device for one in drawn if one is not None)
    found: List[int] = torch.stack([count.to(device) for count in counts]).tolist()
    return found


def _drawn(target: Target) -> Optional[Tensor]:
    """The masks where they are (N, H, W) with N > 0; other kinds (RLE, polygons) are not looked at."""
    masks: Any = target.get('masks')
    return masks if isinstance(masks, Tensor) and masks.dim() == 3 and len(masks) else None


def _any_pixel(masks: Tensor) -> Tensor:
    """bool (N,)."""
    flat = masks.detach().flatten(1)
    if flat.element_size() == 1 and flat.shape[1] % 8 == 0 and flat.is_contiguous() and flat.storage_offset() % 8 == 0:
        flat = flat.view(torch.int64)  # eight pixels at once: this runs on every batch
    return flat.any(1).bool()  # of uint8 it is uint8
