"""Boxes that no assigner can use."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any, Optional, Tuple

import numpy as np
import torch

from mmguard.labels.boxes import NO_AREA, NOT_FINITE, OUTSIDE, corner_faults
from mmguard.labels.instances import FEW

_INF = float('inf')


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
    faults = _faults(boxes, img_shape) if corners is None else corner_faults(np.asarray(corners), img_shape)
    return faults if faults.any() else None


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


def _faults(boxes: Any, img_shape: Tuple[float, float]) -> np.ndarray:
    """Of rotated, quadrilateral and other boxes, by what every type of box has to offer."""
    enclosing = _enclosing(boxes)
    if enclosing is not None:
        faults = corner_faults(enclosing, img_shape)
    else:
        faults = np.zeros(len(boxes), np.int8)
        faults[~boxes.is_inside(img_shape).numpy()] = OUTSIDE
    with warnings.catch_warnings():  # quadrilateral boxes warn that their width is made up
        warnings.simplefilter('ignore')
        has_area = (boxes.widths > 0) & (boxes.heights > 0) & (boxes.areas > 0)
    faults[~has_area.numpy()] = NO_AREA
    faults[~boxes.tensor.flatten(1).isfinite().all(dim=1).numpy()] = NOT_FINITE
    return faults


def _enclosing(boxes: Any) -> Optional[np.ndarray]:
    """(N, 4) corners of the horizontal boxes around others; ``None`` where their type knows no such conversion.

    ``is_inside`` of rotated and quadrilateral boxes asks for the centre, which may lie outside of an image that shows a
    part of the object.
    """
    try:
        return boxes.convert_to('hbox').tensor.numpy()
    except AssertionError:  # mmdet's, of a type without a converter
        return None
