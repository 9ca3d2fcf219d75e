"""Boxes over an image: valid ones thin, invalid ones loud, and a mark for those that cannot be seen."""

from __future__ import annotations

import math
from typing import List, NamedTuple, Sequence, Tuple

from mmguard.tools.report.page import Box

#: Boxes drawn per image; the invalid ones come first.
MOST = 300
_WHY = {'box_no_area': 'no area', 'box_outside': 'outside', 'box_not_finite': 'not finite'}


class DrawnBox(NamedTuple):
    """A box as SVG has it.

    Args:
        kind (str): ``'valid'`` or ``'invalid'``.
        name (str): What stands at (x, y).
        letters (float): Their height.
        path (str): Lines; none of a box that is not finite.
        thick (float): Of the lines.
        anchor (str): ``'start'`` or ``'end'``: which end of the name is there.
    """

    kind: str
    name: str
    letters: float
    x: float
    y: float
    path: str = ''
    thick: float = 3.0
    anchor: str = 'start'


def drawn_boxes(boxes: Sequence[Box], size: Tuple[int, int], shown: Tuple[int, int]) -> List[DrawnBox]:
    """What to draw over a picture, the last on top.

    Args:
        boxes (sequence of Box): In pixels of the image file.
        size (tuple): (width, height) of the file.
        shown (tuple): (width, height) of the picture.
    """
    letters = max(11.0, shown[0] / 42)
    chosen = sorted(boxes, key=lambda box: not box.reason)[:MOST][::-1]
    there = [box for box in chosen if all(map(math.isfinite, box.corners))]
    unbounded = [box for box in chosen if not all(map(math.isfinite, box.corners))]
    scale = shown[0] / max(size[0], 1), shown[1] / max(size[1], 1)
    return [_drawn(box, scale, shown, letters) for box in there] + [
        DrawnBox('invalid', _shortened(': '.join(filter(None, (box.name, 'not finite')))), letters, 6, line)
        for line, box in zip((letters * (1.4 + 1.3 * place) for place in range(len(unbounded))), unbounded)
    ]


def _drawn(box: Box, scale: Tuple[float, float], shown: Tuple[int, int], letters: float) -> DrawnBox:
    x1, x2 = sorted((box.corners[0] * scale[0], box.corners[2] * scale[0]))
    y1, y2 = sorted((box.corners[1] * scale[1], box.corners[3] * scale[1]))
    why = _WHY.get(box.reason, '')
    name = f'{box.name} ({why})' if box.name and why else box.name or why
    thick = 3.0 if box.reason else 1.6
    if x2 <= 0 or y2 <= 0 or x1 >= shown[0] or y1 >= shown[1] or x2 - x1 < 3 or y2 - y1 < 3:
        # Too small to see, or not there: a cross at the nearest place of the image.
        x, y = min(max((x1 + x2) / 2, 8), shown[0] - 8), min(max((y1 + y2) / 2, 8), shown[1] - 8)
        arm, thick = letters / 2, 3.0
        side = 2 * arm
        path = f'M{x - arm:.1f} {y - arm:.1f} l{side:.1f} {side:.1f} m0 {-side:.1f} l{-side:.1f} {side:.1f}'
        x, y = x + arm + 3, y + arm
    else:
        x1, x2, y1, y2 = max(x1, 1), min(x2, shown[0] - 1), max(y1, 1), min(y2, shown[1] - 1)
        path = f'M{x1:.1f} {y1:.1f}H{x2:.1f}V{y2:.1f}H{x1:.1f}Z'
        x, y = x1 + 1, y1 - 4 if y1 > letters * 1.5 else y1 + letters * 1.1
    at_end = x > shown[0] * 0.7
    return DrawnBox(
        'invalid' if box.reason else 'valid',
        _shortened(name),
        letters,
        shown[0] - 4 if at_end else x,
        y,
        path,
        thick,
        'end' if at_end else 'start',
    )


def _shortened(name: str) -> str:
    return name if len(name) <= 40 else f'{name[:39]}…'
