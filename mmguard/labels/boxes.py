"""What is wrong with boxes, whoever reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from mmguard.labels.instances import BOX_REASONS

NOT_FINITE, NO_AREA, OUTSIDE = (BOX_REASONS.index(f'box_{name}') for name in ('not_finite', 'no_area', 'outside'))


def corner_faults(corners: np.ndarray, sizes: Any) -> np.ndarray:
    """The fault of each box.

    Args:
        corners (np.ndarray): (N, 4): x1, y1, x2, y2 in pixels.
        sizes: Height and width of the image; infinite where they are not known: no box counts as outside. (N, 2): of
            each box's image.

    Returns:
        np.ndarray: int8 (N,), the place of the first fault in ``BOX_REASONS``; 0: none.

    Example:
        >>> corner_faults(np.array([[0, 0, 5, 5], [0, 0, 5, 0], [8, 0, 9, 1], [0, 0, np.inf, 1]]), (8, 8)).tolist()
        [0, 2, 3, 1]
    """
    left, top, right, bottom = corners.T
    height, width = np.asarray(sizes).T
    finite = np.isfinite(corners).all(axis=1)
    has_area = (right > left) & (bottom > top)
    inside = (right > 0) & (bottom > 0) & (left < width) & (top < height)
    if (finite & has_area & inside).all():  # as nearly always
        return np.zeros(len(corners), np.int8)
    faults = np.where(has_area, np.where(inside, 0, OUTSIDE), NO_AREA)
    return np.where(finite, faults, NOT_FINITE).astype(np.int8)
