"""Faults of a batch of targets: labels, boxes and masks, copied to the host at once."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.detection.fields import Target
from mmguard.labels.instances import NO_AREA, NOT_FINITE, OUTSIDE

#: Box formats in pixels, which can be compared with the size of an image.
IN_PIXELS = ('xyxy', 'xywh')


def read_on_host(
    targets: Sequence[Target],
    label_key: str,
    check_boxes: bool,
    box_format: Optional[str],
    image_sizes: Optional[List[Tuple[int, int]]] = None,
) -> Tuple[np.ndarray, np.ndarray]:
    """Return all labels and the fault of each box.

    Args:
        targets (list[dict]): Checked targets.
        label_key, check_boxes, box_format: As in :func:`~mmguard.detection.guard_targets`.
        image_sizes (list[tuple[int, int]], optional): Height and width of each image, pixels. ``None``: no box counts
            as outside.

    Returns:
        tuple[np.ndarray, np.ndarray]: int64 (N,) each, over the whole batch: labels, and indices in ``BOX_REASONS`` (0:
        no fault).
    """
    if not targets:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Values beyond int64 turn negative: invalid either way.
    labels = torch.cat([target[label_key].long() for target in targets])
    if not check_boxes or 'boxes' not in targets[0]:
        found = labels.cpu().numpy()
        return found, np.zeros_like(found)
    boxes = torch.cat([target['boxes'].detach() for target in targets])
    limits = None
    if image_sizes is not None and box_format in IN_PIXELS:
        counts = torch.tensor([len(target[label_key]) for target in targets])
        limits = torch.tensor(image_sizes).flip(1).repeat_interleave(counts, 0).to(boxes.device)
    faults = box_faults(boxes, box_format, limits)
    labels, faults = torch.stack([labels, faults.to(labels.device)]).cpu().unbind()
    return labels.numpy(), faults.numpy()


def box_faults(boxes: Tensor, box_format: Optional[str], limits: Optional[Tensor] = None) -> Tensor:
    """Find the fault of each box.

    Args:
        boxes (Tensor): (N, 4) in ``box_format``; (N, D) with ``None``.
        box_format (str, optional): ``'xyxy'``, ``'xywh'``, ``'cxcywh'``; ``None``: unknown, areas are not checked.
        limits (Tensor, optional): (N, 2), width and height of each box's image.

    Returns:
        Tensor: int64 (N,) on the device of ``boxes``, index of the first fault in ``BOX_REASONS``; 0: no fault.

    Example:
        >>> box_faults(torch.tensor([[0.0, 0.0, 5.0, 0.0], [8.0, 0.0, 9.0, 1.0]]), 'xyxy', torch.tensor([[8, 8]] * 2))
        tensor([2, 3])
    """
    faults = torch.zeros(len(boxes), dtype=torch.int64, device=boxes.device)
    if box_format is not None:
        first, second = boxes[:, :2], boxes[:, 2:]
        if limits is not None:
            ends = second if box_format == 'xyxy' else first + second
            faults = faults.masked_fill(((ends <= 0) | (first >= limits)).any(dim=1), OUTSIDE)
        no_area = (second <= first) if box_format == 'xyxy' else (second <= 0)
        faults = faults.masked_fill(no_area.any(dim=1), NO_AREA)
    return faults.masked_fill(~boxes.isfinite().all(dim=1), NOT_FINITE)


def other_size(targets: Sequence[Target], sizes: Optional[List[Tuple[int, int]]], padded: bool) -> str:
    """Describe the first masks of another size than their image; empty if all sizes match.

    Compares only shapes, so it does not synchronise. Masks smaller by a whole factor are accepted.
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
    """Return True if an image is a whole multiple of its mask, with the same factor for height and width."""
    times = max(size[0] // max(height, 1), 1)
    return (times * height, times * width) == size


def count_empty_masks(targets: Sequence[Target]) -> List[int]:
    """Count the masks without a pixel in each target, with one copy to the host."""
    drawn = [_drawn(target) for target in targets]
    if all(masks is None for masks in drawn):
        return [0] * len(targets)
    counts = [torch.zeros((), dtype=torch.int64) if one is None else (~_any_pixel(one)).sum() for one in drawn]
    device = next(one.device for one in drawn if one is not None)
    found: List[int] = torch.stack([count.to(device) for count in counts]).tolist()
    return found


def _drawn(target: Target) -> Optional[Tensor]:
    """Return the masks if they are (N, H, W) with N > 0; other kinds (RLE, polygons) are not checked."""
    masks: Any = target.get('masks')
    return masks if isinstance(masks, Tensor) and masks.dim() == 3 and len(masks) else None


def _any_pixel(masks: Tensor) -> Tensor:
    """Find masks with any pixel: bool (N,)."""
    flat = masks.detach().flatten(1)
    if flat.element_size() == 1 and flat.shape[1] % 8 == 0 and flat.is_contiguous() and flat.storage_offset() % 8 == 0:
        flat = flat.view(torch.int64)  # eight pixels at once: this runs on every batch
    return flat.any(1).bool()  # uint8 stays uint8
