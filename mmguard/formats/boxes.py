"""Faults of a box in an annotation file, and the part of the box inside the image."""

from __future__ import annotations

import math
from typing import Any, Optional, Tuple

from mmguard.labels.instances import NO_AREA, NOT_FINITE, OUTSIDE

Corners = Tuple[float, float, float, float]


def number(value: Any) -> Optional[float]:
    """Return a finite number, parsed if it is text; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def numbers(values: Any) -> Optional[Corners]:
    """Return four finite numbers; ``None`` for anything else."""
    if not isinstance(values, list) or len(values) != 4:
        return None
    first, second, third, fourth = map(number, values)
    if first is None or second is None or third is None or fourth is None:
        return None
    return first, second, third, fourth


def shortest(value: float) -> float:
    """Return a number in its shortest form, without ``.0``."""
    return int(value) if value.is_integer() else value


def fault_of(corners: Optional[Corners], width: float, height: float) -> int:
    """Return the index of a box's first fault in ``BOX_REASONS``; 0: it has no fault."""
    if corners is None:
        return NOT_FINITE
    left, top, right, bottom = corners
    if right <= left or bottom <= top:
        return NO_AREA
    return OUTSIDE if right <= 0 or bottom <= 0 or left >= width or top >= height else 0


def clamp(corners: Corners, width: float, height: float) -> Corners:
    left, top, right, bottom = corners
    return max(left, 0), max(top, 0), min(right, width), min(bottom, height)
