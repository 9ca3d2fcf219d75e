"""What is wrong with a box of an annotation file, and its part inside the image."""

from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Tuple

from mmguard.instances import BOX_REASONS

Corners = Tuple[float, float, float, float]
_NOT_FINITE, _NO_AREA, _OUTSIDE = (BOX_REASONS.index(f'box_{name}') for name in ('not_finite', 'no_area', 'outside'))


def numbers(values: Any) -> Optional[Corners]:
    """Four finite numbers; ``None`` for anything else."""
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != 4:
        return None
    try:
        first, second, third, fourth = (float(value) for value in values)
    except (TypeError, ValueError):
        return None
    found = (first, second, third, fourth)
    return found if all(math.isfinite(value) for value in found) else None


def fault_of(corners: Optional[Corners], width: float, height: float) -> int:
    """The place of a box's first fault in ``BOX_REASONS``; 0: none."""
    if corners is None:
        return _NOT_FINITE
    left, top, right, bottom = corners
    if right <= left or bottom <= top:
        return _NO_AREA
    return _OUTSIDE if right <= 0 or bottom <= 0 or left >= width or top >= height else 0


def clamped(corners: Corners, width: float, height: float) -> Corners:
    left, top, right, bottom = corners
    return max(left, 0), max(top, 0), min(right, width), min(bottom, height)
