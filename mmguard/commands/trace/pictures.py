"""Pictures of a sample before and after its pipeline, with its labels drawn."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from mmguard.commands.page import pictures as page
from mmguard.commands.trace.snapshot import Snapshot, take
from mmguard.labels.spaces import KINDS, LabelSpaces, Space
from mmguard.properties.samples import read_parts
from mmguard.text import quantity, visible_name

#: Maximum number of samples on a page, of boxes in a picture, and of values in a legend.
MOST_SAMPLES, MOST_BOXES, NAMED = 100, 200, 24


def draw_sample(spaces: LabelSpaces, info: Dict[str, Any], stored: Snapshot, results: Any) -> List[page.Panel]:
    """Return the pictures of a sample before its pipeline (from its files) and after its pipeline (``results``)."""
    try:
        pixels, size = page.read_photo(str(info.get('img_path')))
        panels = [_draw('before:', pixels, stored.size or size, stored, LabelSpaces())]
    except page.CannotDraw as error:
        panels = [page.Panel('stored image', why=str(error))]
    image = read_parts(results).image if isinstance(results, dict) else None
    if image is None:
        return [*panels, page.Panel('loaded image', why='the pipeline did not return exactly one image')]
    after = take('', results)
    return [*panels, _draw('after:', _as_photo(image), after.size or image.shape[:2], after, spaces)]


def _as_photo(image: Any) -> np.ndarray:
    """Return an image of any dtype as uint8 RGB of reduced size; three or more channels are read as BGR, as in mmcv."""
    small = page.reduce(np.atleast_3d(np.asarray(image)))
    small = small[..., 2::-1] if small.shape[2] >= 3 else small[..., :1].repeat(3, 2)
    if small.dtype != np.uint8:
        small = np.nan_to_num(small.astype(np.float64), posinf=0, neginf=0)
        small = (255 * (small - small.min()) / (np.ptp(small) or 1)).astype(np.uint8)
    return small


def _choose_color(space: Optional[Space], value: int) -> Tuple[int, ...]:
    if space is not None and not space.is_valid(value):
        return page.LOUD
    is_ignored = space is not None and value == space.ignore_index
    return page.IGNORED if is_ignored else tuple(page.build_palette()[value % 256].tolist())


def _draw(name: str, pixels: np.ndarray, size: Tuple[int, int], shot: Snapshot, spaces: LabelSpaces) -> page.Panel:
    """Return a picture of an image with a snapshot's labels; its boxes are for an image of ``size`` (height, width)."""
    from PIL import Image, ImageDraw

    keys: List[Tuple[str, str]] = []
    for kind, unit, counts in zip(KINDS, ('px', 'box'), (shot.values, shot.labels)):
        colors = {value: _choose_color(spaces.get(kind), value) for value in counts}
        for value in sorted(counts, key=lambda value: (colors[value] != page.LOUD, -counts[value]))[:NAMED]:
            called = f' {visible_name(spaces.names[value], 40)}' if 0 <= value < len(spaces.names) else ''
            keys.append((page.format_css(colors[value]), f'{value}{called} ({quantity(counts[value], unit)})'))
        keys += [('', f'{len(counts) - NAMED} more')] * (len(counts) > NAMED)
        if kind == 'pixels' and shot.integers.ndim == 2 and counts:
            pixels = _paint(pixels, shot.integers, colors)
    height, width = pixels.shape[:2]
    canvas: Any = Image.fromarray(np.ascontiguousarray(pixels))
    pen, view = ImageDraw.Draw(canvas), page.View(0, 0, width / max(size[1], 1), width, height)
    boxed = [one for one in shot.instances or () if one.box is not None and np.isfinite(one.box).all()]
    for one in boxed[:MOST_BOXES]:
        color = page.IGNORED if one.ignored else _choose_color(spaces.instances, one.label)
        page.draw_outline(pen, view, one.box or (), color)
        (x, y), text = view.place(*(one.box or ())[:2]), str(one.label)
        pen.rectangle((x, y, x + 4 + 6 * len(text), y + 12), fill=color)
        pen.text((x + 2, y), text, fill=(0, 0, 0) if one.ignored else (255, 255, 255))
    notes = [shot.note, f'{MOST_BOXES} of {len(boxed):,} boxes' if len(boxed) > MOST_BOXES else '']
    return page.Panel(
        name, page.encode(np.asarray(canvas), lossy=True), keys=[*keys, *(('', note) for note in notes if note)]
    )


def _paint(pixels: np.ndarray, label: np.ndarray, colors: Dict[int, Tuple[int, ...]]) -> np.ndarray:
    """Return an image with a label map of any size painted over it; invalid pixels are enlarged if they are few."""
    places = [np.arange(n) * side // n for n, side in zip(pixels.shape, label.shape)]
    values, index = np.unique(label[np.ix_(*places)], return_inverse=True)
    table = np.array([colors[value] for value in values.tolist()])[index.reshape(pixels.shape[:2])]
    painted = (0.45 * pixels + 0.55 * table).astype(np.uint8)
    seen = page.shrink_mask(np.isin(label, [value for value, color in colors.items() if color == page.LOUD]))
    painted[seen[np.ix_(*(np.arange(n) * side // n for n, side in zip(pixels.shape, seen.shape)))]] = page.LOUD
    return painted
