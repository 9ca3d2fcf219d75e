"""Pictures of boxes on their image: outlined, with the edges marked that are wrong."""

from __future__ import annotations

import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.commands.page.pictures import LONGEST, LOUD, CannotDraw, Panel, Picture, encode, format_css, read_photo
from mmguard.facts.labels import BoxedImage, DrawnBox
from mmguard.formats.table import LARGEST_SIDE
from mmguard.text import quantity

#: Colors of sound boxes, of wrong edges, and of what is outside of the image.
SOUND, EDGE, OUTSIDE = (40, 140, 255), (255, 214, 0), (206, 210, 217)
#: Image without a file.
_BLANK = (250, 250, 250)
#: Widths of an outline and of a marked edge, and what their black borders add.
_LINE, _MARK, _BORDER = 3, 5, 4
_BLACK = (0, 0, 0)
#: Maximum margin that shows a box's part outside of the image, and space beyond it, as shares of the image's side.
_MARGIN, _LEAST = 0.4, 0.06
#: Maximum magnification of a small image; boxes of fewer pixels than this are ringed.
_LARGER, _TINY = 8.0, 8


class View(NamedTuple):
    """Part of the plane that is drawn: left and top in pixels of the image, scale, and size of the picture."""

    left: float
    top: float
    scale: float
    width: int
    height: int

    def place(self, x: float, y: float) -> Tuple[int, int]:
        """Return the pixel of the picture; points outside are moved to the nearest pixel with room for a mark."""
        room = (_MARK + _BORDER) // 2
        across, down = (x - self.left) * self.scale, (y - self.top) * self.scale
        return (
            round(min(max(across, room), self.width - 1 - room)),
            round(min(max(down, room), self.height - 1 - room)),
        )


def draw_boxes_panel(image: BoxedImage) -> Panel:
    """Return the picture of an image with its boxes; without its file, on a plain canvas of the stated size."""
    pixels: Optional[np.ndarray] = None
    size = _read_size(image.size)
    notes: List[str] = []
    try:
        if not image.path:
            raise CannotDraw('its folder is not known (--images DIR)')
        pixels, actual = read_photo(image.path)
        if size not in (None, (1, 1), actual):
            notes.append(f'{actual[1]} x {actual[0]}, but {size[1]:g} x {size[0]:g} in the annotations')
        size = actual
    except CannotDraw as error:
        if size in (None, (1, 1)):
            return Panel('boxes', why=f'the size of the image is not known: {error}')
        notes.append(f'without the image: {error}')
    assert size is not None
    height, width = size
    scale = (width, height) * 2 if _read_size(image.size) == (1, 1) else (1.0,) * 4
    boxes = [box._replace(corners=tuple(side * by for side, by in zip(box.corners, scale))) for box in image.boxes]
    finite = [box for box in boxes if all(map(math.isfinite, box.corners))]
    picture = draw_boxes(finite, size, pixels)
    faulty = [box for box in finite if box.fault]
    marked = [box for box in faulty if any(_find_wrong_edges(box.corners, size))]
    keys = [(format_css(SOUND), 'box')] if len(faulty) < len(finite) else []
    keys += [(format_css(LOUD), 'faulty box')] if faulty else []
    keys += [(format_css(EDGE), 'wrong edge')] if marked else []
    if len(finite) < len(image.boxes):
        notes.append(f'{quantity(len(image.boxes) - len(finite), "box")} not finite')
    if image.total > len(image.boxes):
        notes.append(f'{len(image.boxes)} of {image.total:,} boxes')
    return Panel('boxes,', picture, keys=[*keys, *(('', note) for note in notes)])


def _read_size(size: Sequence[float]) -> Optional[Tuple[float, float]]:
    height, width = size
    return (height, width) if all(1 <= side <= LARGEST_SIDE for side in size) else None


def draw_boxes(boxes: Sequence[DrawnBox], size: Tuple[float, float], pixels: Optional[np.ndarray] = None) -> Picture:
    """Return boxes drawn on an image.

    Args:
        boxes (list[DrawnBox]): With finite corners; those with a fault are drawn over the others.
        size (tuple[float, float]): Height and width of the image.
        pixels (np.ndarray, optional): uint8 (height, width, 3), the image in any size.
    """
    from PIL import Image, ImageDraw

    height, width = size
    view = _compute_view([box.corners for box in boxes if box.fault], width, height)
    canvas: Any = Image.new('RGB', (view.width, view.height), OUTSIDE)
    first = round(-view.left * view.scale), round(-view.top * view.scale)
    shown = max(1, round(width * view.scale)), max(1, round(height * view.scale))
    if pixels is None:
        canvas.paste(_BLANK, (*first, first[0] + shown[0], first[1] + shown[1]))
    else:
        canvas.paste(Image.fromarray((pixels * 0.8 + 20).astype(np.uint8)).resize(shown), first)
    pen = ImageDraw.Draw(canvas)
    for box in sorted(boxes, key=lambda one: bool(one.fault)):
        draw_outline(pen, view, box.corners, LOUD if box.fault else SOUND)
        if box.fault:
            _mark(pen, view, box.corners, size)
    return encode(np.asarray(canvas), lossy=pixels is not None)


def _compute_view(faulty: Sequence[Sequence[float]], width: float, height: float) -> View:
    """Return the image with a margin on each side where a faulty box leaves it."""
    margins = []
    for axis, side in enumerate((width, height)):
        ends = [end for corners in faulty for end in (corners[axis], corners[axis + 2])]
        for beyond in (-min(ends, default=0.0), max(ends, default=0.0) - side):
            margins.append(min(beyond, _MARGIN * side) + _LEAST * side if beyond > 0 else 0.0)
    left, right, top, bottom = margins
    whole = width + left + right, height + top + bottom
    scale = min(LONGEST / max(whole), _LARGER)
    sides = (max(2 * _TINY, round(side * scale)) for side in whole)
    return View(-left, -top, scale, *sides)


def draw_outline(pen: Any, view: View, corners: Sequence[float], color: Tuple[int, ...]) -> None:
    """Draw a box; a tiny one is ringed."""
    left, top, right, bottom = corners
    (a, b), (c, d) = view.place(left, top), view.place(right, bottom)
    if max(abs(c - a), abs(d - b)) < _TINY:
        ring = (min(a, c) - _TINY, min(b, d) - _TINY, max(a, c) + _TINY, max(b, d) + _TINY)
        pen.ellipse(ring, outline=color, width=_LINE)
    for thick, fill in ((_LINE + 2, _BLACK), (_LINE, color)):
        pen.line([(a, b), (c, b), (c, d), (a, d), (a, b)], fill=fill, width=thick)


def _mark(pen: Any, view: View, corners: Sequence[float], size: Tuple[float, float]) -> None:
    left, top, right, bottom = corners
    (a, b), (c, d) = view.place(left, top), view.place(right, bottom)
    edges = ((a, b, a, d), (a, b, c, b), (c, b, c, d), (a, d, c, d))
    for thick, color in ((_MARK + _BORDER, _BLACK), (_MARK, EDGE)):
        for is_wrong, line in zip(_find_wrong_edges(corners, size), edges):
            if is_wrong:
                x, y, *_ = line
                pen.rectangle((x - thick // 2, y - thick // 2, x + thick // 2, y + thick // 2), fill=color)
                pen.line(line, fill=color, width=thick)


def _find_wrong_edges(corners: Sequence[float], size: Tuple[float, float]) -> List[bool]:
    """Return for left, top, right and bottom: True if it is outside of the image, or not on its side of the other."""
    height, width = size
    left, top, right, bottom = corners
    no_width, no_height = right <= left, bottom <= top
    sides = ((left, width, no_width), (top, height, no_height), (right, width, no_width), (bottom, height, no_height))
    return [is_turned or not 0 <= place <= most for place, most, is_turned in sides]
