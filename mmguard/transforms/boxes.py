"""Boxes that no assigner can use."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np
import torch

from mmguard.instances import BOX_REASONS

_NOT_FINITE, _NO_AREA, _OUTSIDE = (BOX_REASONS.index(f'box_{name}') for name in ('not_finite', 'no_area', 'outside'))


def box_faults(boxes: Any, img_shape: Optional[Tuple[int, int]]) -> Optional[np.ndarray]:
    """What is wrong with each box.

    Args:
        boxes (BaseBoxes, Tensor or np.ndarray): N boxes; plain arrays hold (x1, y1, x2, y2), in pixels.
        img_shape (tuple[int, int], optional): Height and width. ``None``: no box counts as outside.

    Returns:
        np.ndarray, optional: int (N,), the place of the first fault in ``BOX_REASONS`` (0: none); ``None`` where no
        box has a fault.
    """
    if not len(boxes):
        return None
    corners = _corners(boxes)
    if corners is None:
        finite, has_area, inside = _judge_boxes(boxes, img_shape)
        if (finite & has_area & inside).all():
            return None
    elif _all_good(corners, img_shape):
        return None
    else:
        finite, has_area, inside = _judge_corners(corners, img_shape)
    faults = np.where(has_area, np.where(inside, 0, _OUTSIDE), _NO_AREA)
    return np.where(finite, faults, _NOT_FINITE)


def _corners(boxes: Any) -> Optional[np.ndarray]:
    """(N, 4) corners of horizontal boxes, without a copy; ``None`` for any other type of box."""
    if hasattr(boxes, 'tensor'):
        from mmdet.structures.bbox import HorizontalBoxes  # not installed where boxes are plain arrays

        if not isinstance(boxes, HorizontalBoxes):
            return None
        boxes = boxes.tensor
    return boxes.numpy() if isinstance(boxes, torch.Tensor) else np.asarray(boxes)


def _all_good(corners: np.ndarray, img_shape: Optional[Tuple[int, int]]) -> bool:
    """The usual case, in as few passes as can be; NaN fails the first comparison."""
    first, last = corners[:, :2], corners[:, 2:]
    if not (last > first).all() or last.min() <= 0 or first.min() == -np.inf or last.max() == np.inf:
        return False
    return img_shape is None or bool(first[:, 0].max() < img_shape[1] and first[:, 1].max() < img_shape[0])


def _judge_corners(corners: np.ndarray, img_shape: Optional[Tuple[int, int]]) -> Tuple[np.ndarray, ...]:
    left, top, right, bottom = corners.T
    finite = np.isfinite(corners).all(axis=1)
    has_area = (right > left) & (bottom > top)
    inside = (right > 0) & (bottom > 0)
    if img_shape is not None:
        inside &= (left < img_shape[1]) & (top < img_shape[0])
    return finite, has_area, inside


def _judge_boxes(boxes: Any, img_shape: Optional[Tuple[int, int]]) -> Tuple[np.ndarray, ...]:
    """Rotated, quadrilateral and other boxes, by what every type of box has to offer."""
    finite = boxes.tensor.flatten(1).isfinite().all(dim=1)
    has_area = (boxes.widths > 0) & (boxes.heights > 0) & (boxes.areas > 0)
    inside = torch.ones_like(finite) if img_shape is None else boxes.is_inside(img_shape)
    return finite.numpy(), has_area.numpy(), inside.numpy()
