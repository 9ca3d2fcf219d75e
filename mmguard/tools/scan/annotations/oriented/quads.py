"""Oriented boxes by their four corners, whatever the format that they are written in."""

from __future__ import annotations

import math
from typing import NamedTuple, Optional, Sequence, Tuple

from mmguard.tools.scan.annotations.shape_records import Points, Shape, around

#: Why the corners are not as they should be -> as rule MG179 knows it.
CROSSED = 'the corners of an oriented box are in crossing order'
#: As :attr:`Shape.kind`: whole in its image, cut by its edge (and said to be), in fractions of the image.
WHOLE, CUT, FRACTIONS = 'oriented box', 'cut', 'fractions'
#: Less is rounding.
_LEAST_AREA = 1e-6


class Quad(NamedTuple):
    """An oriented box.

    Attributes:
        label (str): Its name.
        points (list[tuple]): Its corners, x and y.
        is_cut (bool): Whether it says that the edge of its image cuts it.
        ignored (bool): Whether it is not trained on.
        has_area (bool): Whether width and height, where they are written, are above 0.
    """

    label: str
    points: Points
    is_cut: bool = False
    ignored: bool = False
    has_area: bool = True


def shape_of_quad(quad: Quad, place: int) -> Shape:
    """As a shape: the box around it, and what is wrong with it. MMRotate takes the corners in any order."""
    points = in_order(quad.points)
    left, top, right, bottom = around(points)
    kind = FRACTIONS if in_unit(points) else CUT if quad.is_cut else WHOLE
    if kind == FRACTIONS or not quad.has_area or area_of(points) <= _LEAST_AREA:
        bottom = top  # a line, and what is smaller than a pixel
    fault = CROSSED if points is not quad.points else ''
    return Shape(place, quad.label, kind, (left, top, right, bottom), None, fault, quad.ignored)


def in_unit(points: Points) -> bool:
    """Whether all corners lie in [0, 1]: no object is that small."""
    return all(0 <= side <= 1 for point in points for side in point)


def in_order(points: Points) -> Points:
    """The corners so that no two sides cross; the same list where none do."""
    a, b, c, d = points
    if _cross(a, b, c, d):
        return [a, c, b, d]
    return [a, b, d, c] if _cross(b, c, d, a) else points


def area_of(points: Points) -> float:
    """What the corners enclose."""
    pairs = zip(points, [*points[1:], points[0]])
    return abs(sum(x * other_y - other_x * y for (x, y), (other_x, other_y) in pairs)) / 2


def turned(numbers: Sequence[float]) -> Points:
    """The corners of a centre, width, height and angle (in radians), in MMRotate's order."""
    x, y, width, height, angle = numbers
    along = width / 2 * math.cos(angle), width / 2 * math.sin(angle)
    across = -height / 2 * math.sin(angle), height / 2 * math.cos(angle)
    signs = ((1, 1), (1, -1), (-1, -1), (-1, 1))
    return [(x + a * along[0] + b * across[0], y + a * along[1] + b * across[1]) for a, b in signs]


def finite(texts: Sequence[Optional[str]]) -> Optional[Tuple[float, ...]]:
    """Finite numbers; ``None`` where one is missing, or none."""
    try:
        found = tuple(float(text or '') for text in texts)
    except ValueError:
        return None
    return found if all(map(math.isfinite, found)) else None


def pairs(numbers: Sequence[float]) -> Points:
    return list(zip(numbers[0::2], numbers[1::2]))


def _cross(a: Tuple[float, float], b: Tuple[float, float], c: Tuple[float, float], d: Tuple[float, float]) -> bool:
    return _side(a, b, c) * _side(a, b, d) < 0 and _side(c, d, a) * _side(c, d, b) < 0


def _side(a: Tuple[float, float], b: Tuple[float, float], c: Tuple[float, float]) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
