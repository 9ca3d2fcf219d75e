"""Boxes over an image: valid ones thin, invalid ones loud, and a mark for those that cannot be seen."""

from __future__ import annotations

import math
from typing import List, Sequence, Tuple

from mmguard.report.html import Markup, element, join
from mmguard.report.page import Box

#: Boxes drawn per image; the invalid ones come first.
MOST = 300
_WHY = {'box_no_area': 'no area', 'box_outside': 'outside', 'box_not_finite': 'not finite'}


def box_overlay(boxes: Sequence[Box], size: Tuple[int, int], shown: Tuple[int, int]) -> Markup:
    """SVG elements over a picture.

    Args:
        boxes (sequence of Box): In pixels of the image file.
        size (tuple): (width, height) of the file.
        shown (tuple): (width, height) of the picture.
    """
    scale = shown[0] / max(size[0], 1), shown[1] / max(size[1], 1)
    # Drawn last is on top.
    chosen = sorted(boxes, key=lambda box: not box.reason)[:MOST][::-1]
    letters = max(11.0, shown[0] / 42)
    lost: List[Markup] = []
    drawn = []
    for box in chosen:
        if not all(math.isfinite(corner) for corner in box.corners):
            line = f'{box.name}: {_WHY["box_not_finite"]}' if box.name else _WHY['box_not_finite']
            lost.append(_words(6, letters * (1.4 + 1.3 * len(lost)), line, letters, 'var(--invalid)'))
            continue
        drawn.append(_one(box, scale, shown, letters))
    return join(*drawn, *lost)


def _one(box: Box, scale: Tuple[float, float], shown: Tuple[int, int], letters: float) -> Markup:
    x1, x2 = sorted((box.corners[0] * scale[0], box.corners[2] * scale[0]))
    y1, y2 = sorted((box.corners[1] * scale[1], box.corners[3] * scale[1]))
    colour = 'var(--invalid)' if box.reason else 'var(--valid)'
    why = _WHY.get(box.reason, '')
    name = f'{box.name} ({why})' if box.name and why else box.name or why
    outside = x2 <= 0 or y2 <= 0 or x1 >= shown[0] or y1 >= shown[1]
    if outside or x2 - x1 < 3 or y2 - y1 < 3:
        # Too small to see, or not there: a cross at the nearest place of the image.
        x, y = min(max((x1 + x2) / 2, 8), shown[0] - 8), min(max((y1 + y2) / 2, 8), shown[1] - 8)
        arm = letters / 2
        side = 2 * arm
        cross = f'M{x - arm:.1f} {y - arm:.1f} l{side:.1f} {side:.1f} m0 {-side:.1f} l{-side:.1f} {side:.1f}'
        mark = join(_path(cross, 'rgba(0,0,0,.6)', 6), _path(cross, colour, 3))
        return join(mark, _words(x + arm + 3, y + arm, name, letters, colour, shown[0]))
    x1, x2, y1, y2 = max(x1, 1), min(x2, shown[0] - 1), max(y1, 1), min(y2, shown[1] - 1)
    lines = f'M{x1:.1f} {y1:.1f}H{x2:.1f}V{y2:.1f}H{x1:.1f}Z'
    thick = 3.0 if box.reason else 1.6
    frame = join(_path(lines, 'rgba(0,0,0,.55)', thick + 1.5), _path(lines, colour, thick))
    top = y1 - 4 if y1 > letters * 1.5 else y1 + letters * 1.1
    return join(frame, _words(x1 + 1, top, name, letters, colour, shown[0]) if name else None)


def _path(lines: str, colour: str, width: float) -> Markup:
    return element('path', d=lines, fill='none', stroke=colour, stroke_width=width)


def _words(x: float, y: float, name: str, letters: float, colour: str, right: float = 0) -> Markup:
    anchor = None
    if right and x > right * 0.7:
        x, anchor = right - 4, 'end'
    return element(
        'text',
        name if len(name) <= 40 else f'{name[:39]}…',
        x=f'{x:.1f}',
        y=f'{y:.1f}',
        fill='#fff',
        stroke='#000',
        stroke_width=f'{letters / 5:.1f}',
        stroke_linejoin='round',
        paint_order='stroke',
        font_size=f'{letters:.1f}',
        font_family='system-ui, sans-serif',
        font_weight='600',
        text_anchor=anchor,
        # The name is white on black, readable over any image; the frame tells valid from invalid.
        data_tone='invalid' if colour == 'var(--invalid)' else 'valid',
    )
