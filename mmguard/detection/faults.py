"""Labels of a batch of targets, and what is wrong with their boxes, brought to the host in one copy."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.detection.fields import Target
from mmguard.labels.boxes import NO_AREA, NOT_FINITE, OUTSIDE

#: Formats of boxes that are in pixels where an image's size says anything about them.
IN_PIXELS = ('xyxy', 'xywh')


def read_on_host(
    targets: Sequence[Target],
    label_key: str,
    check_boxes: bool,
    box_format: Optional[str],
    image_sizes: Optional[List[Tuple[int, int]]] = None,
) -> Tuple[np.ndarray, np.ndarray]:
    """All labels, and for each the fault of its box.

    Args:
        targets (list[dict]): Checked ones.
        label_key, check_boxes, box_format: As in :func:`~mmguard.detection.guard_targets`.
        image_sizes (list[tuple[int, int]], optional): Height and width of each image, pixels. ``None``: no box counts
            as outside.

    Returns:
        tuple[np.ndarray, np.ndarray]: int64 (N,) each, over the whole batch: labels, and places in ``BOX_REASONS`` (0:
        no fault).
    """
    if not targets:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # What exceeds int64 turns negative: invalid either way.
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
    """What is wrong with each box.

    Args:
        boxes (Tensor): (N, 4) in ``box_format``; (N, D) with ``None``.
        box_format (str, optional): ``'xyxy'``, ``'xywh'``, ``'cxcywh'``; ``None``: unknown, nothing is said of areas.
        limits (Tensor, optional): (N, 2), width and height of each box's image.

    Returns:
        Tensor: int64 (N,) on the device of ``boxes``, the place of the first fault in ``BOX_REASONS``; 0: none.

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
