"""Boxes that no assigner can use."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Optional, Tuple

import numpy as np
import torch

from mmguard.instances import BOX_REASONS, FEW

_INF = float('inf')
_NOT_FINITE, _NO_AREA, _OUTSIDE = (BOX_REASONS.index(f'box_{name}') for name in ('not_finite', 'no_area', 'outside'))


def box_faults(boxes: Any, img_shape: Tuple[float, float]) -> Optional[np.ndarray]:
    """What is wrong with each box.

    Args:
        boxes (BaseBoxes, Tensor or np.ndarray): N boxes; plain arrays hold (x1, y1, x2, y2), in pixels.
        img_shape (tuple[float, float]): Height and width; infinite: no box counts as outside.

    Returns:
        np.ndarray, optional: int (N,), the place of the first fault in ``BOX_REASONS`` (0: none); ``None`` where no
        box has a fault.
    """
    if not len(boxes):
        return None
    corners = _corners(boxes)
    if corners is None:
        finite, has_area, inside = _judge_boxes(boxes, img_shape)
    else:
        finite, has_area, inside = _judge_corners(np.asarray(corners), img_shape)
    if (finite & has_area & inside).all():
        return None
    faults = np.where(has_area, np.where(inside, 0, _OUTSIDE), _NO_AREA)
    return np.where(finite, faults, _NOT_FINITE)


def are_few_and_good(boxes: Any, img_shape: Tuple[float, float]) -> bool:
    """Whether a fast look at the corners is enough to see that no box has a fault."""
    corners = _corners(boxes)
    if corners is None or len(corners) > FEW:
        return False
    height, width = img_shape
    for left, top, right, bottom in corners.tolist():
        if not (-_INF < left < right < _INF and -_INF < top < bottom < _INF):  # NaN is not smaller than anything
            return False
        if right <= 0 or bottom <= 0 or left >= width or top >= height:
            return False
    return True


def _corners(boxes: Any) -> Any:
    """(N, 4) corners of horizontal boxes, without a copy; ``None`` for any other type of box."""
    if hasattr(boxes, 'tensor'):
        box_type: Any = type(boxes)
        return boxes.tensor if _is_horizontal(box_type) else None
    return boxes if isinstance(boxes, torch.Tensor) else np.asarray(boxes)


@lru_cache(maxsize=None)
def _is_horizontal(box_type: Any) -> bool:
    from mmdet.structures.bbox import HorizontalBoxes  # not installed where boxes are plain arrays

    return issubclass(box_type, HorizontalBoxes)


def _judge_corners(corners: np.ndarray, img_shape: Tuple[float, float]) -> Tuple[np.ndarray, ...]:
    left, top, right, bottom = corners.T
    finite = np.isfinite(corners).all(axis=1)
    has_area = (right > left) & (bottom > top)
    inside = (right > 0) & (bottom > 0) & (left < img_shape[1]) & (top < img_shape[0])
    return finite, has_area, inside


def _judge_boxes(boxes: Any, img_shape: Tuple[float, float]) -> Tuple[np.ndarray, ...]:
    """Rotated, quadrilateral and other boxes, by what every type of box has to offer."""
    finite = boxes.tensor.flatten(1).isfinite().all(dim=1)
    has_area = (boxes.widths > 0) & (boxes.heights > 0) & (boxes.areas > 0)
    return finite.numpy(), has_area.numpy(), boxes.is_inside(img_shape).numpy()
