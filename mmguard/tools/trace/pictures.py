"""Pictures of a sample before and after its pipeline, with its labels drawn."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Tuple

import numpy as np

from mmguard.labels.spaces import KINDS, LabelSpaces
from mmguard.properties.samples import read_parts
from mmguard.text import quantity, visible_name
from mmguard.tools.page.boxes import View, draw_outline
from mmguard.tools.page.pictures import (
    IGNORED,
    LOUD,
    CannotDraw,
    Panel,
    build_palette,
    encode,
    format_css,
    read_photo,
    reduce,
    shrink_mask,
)
from mmguard.tools.trace.snapshot import Snapshot, take

#: Maximum number of pictured samples, of boxes drawn in one, and of values in a legend.
MOST_SAMPLES, MOST_BOXES, NAMED = 100, 200, 24


class Drawing(NamedTuple):
    """A sample on the page: name and mistakes are shown as text, which the page escapes."""

    name: str
    mistakes: List[str]
    panels: List[Panel]


def draw_sample(spaces: LabelSpaces, info: Dict[str, Any], stored: Snapshot, results: Any) -> List[Panel]:
    """Return the pictures of a sample: its files, and what its pipeline delivers.

    Args:
        spaces (LabelSpaces): Valid labels; others are drawn in the color of invalid ones.
        info (dict): The sample before its pipeline, with ``img_path``.
        stored (Snapshot): Its annotations as stored.
        results (Any): The sample after its pipeline; ``None`` if the pipeline failed.
    """
    try:
        pixels, size = read_photo(str(info.get('img_path')))
        panels = [_draw('before:', pixels, stored.size or size, stored, LabelSpaces())]
    except CannotDraw as error:
        panels = [Panel('stored image', why=str(error))]
    image = read_parts(results).image if isinstance(results, dict) else None
    if image is None:
        return [*panels, Panel('loaded image', why='the pipeline did not deliver one image')]
    after = take('', results)
    return [*panels, _draw('after:', _as_photo(image), after.size or image.shape[:2], after, spaces)]


def _as_photo(image: Any) -> np.ndarray:
    """Return an image of any type and number of channels as reduced uint8 RGB; three channels are BGR, as mmcv's."""
    small = reduce(np.atleast_3d(np.asarray(image)))
    small = small[..., 2::-1] if small.shape[2] >= 3 else small[..., :1].repeat(3, 2)
    if small.dtype == np.uint8:
        return small
    small = np.nan_to_num(small.astype(np.float64), posinf=0, neginf=0)
    return (255 * (small - small.min()) / (np.ptp(small) or 1)).astype(np.uint8)


def _draw(name: str, pixels: np.ndarray, size: Tuple[int, int], shot: Snapshot, spaces: LabelSpaces) -> Panel:
    """Return an image with the labels of a snapshot, whose coordinates are those of ``size``, and their legend."""
    from PIL import Image, ImageDraw

    colors: Dict[str, Dict[int, Tuple[int, ...]]] = {kind: {} for kind in KINDS}
    keys: List[Tuple[str, str]] = []
    for kind, counts in zip(KINDS, (shot.values, shot.labels)):
        space = spaces.get(kind)
        for value in counts:
            is_ignored = space is not None and value == space.ignore_index
            known = IGNORED if is_ignored else tuple(build_palette()[value % 256].tolist())
            colors[kind][value] = LOUD if space is not None and not space.is_valid(value) else known
        ranked = sorted(counts, key=lambda value: (colors[kind][value] != LOUD, -counts[value]))
        for value in ranked[:NAMED]:
            called = f' {visible_name(spaces.names[value], 40)}' if 0 <= value < len(spaces.names) else ''
            amount = quantity(counts[value], 'px' if kind == 'pixels' else 'box')
            keys.append((format_css(colors[kind][value]), f'{value}{called} ({amount})'))
        keys += [('', f'{len(counts) - NAMED} more')] * (len(counts) > NAMED)
    if shot.label is not None and shot.label.ndim == 2 and shot.label.size:
        pixels = _paint(pixels, shot.integers, colors['pixels'])
    height, width = pixels.shape[:2]
    canvas: Any = Image.fromarray(np.ascontiguousarray(pixels))
    pen, view = ImageDraw.Draw(canvas), View(0, 0, width / max(size[1], 1), width, height)
    boxed = [one for one in shot.instances or () if one.box is not None and np.isfinite(one.box).all()]
    for one in boxed[:MOST_BOXES]:
        color, corners = IGNORED if one.ignored else colors['instances'][one.label], one.box or ()
        draw_outline(pen, view, corners, color)
        (x, y), text = view.place(*corners[:2]), str(one.label)
        pen.rectangle((x, y, x + 4 + 6 * len(text), y + 12), fill=color)
        pen.text((x + 2, y), text, fill=(0, 0, 0) if one.ignored else (255, 255, 255))
    notes = [shot.note, f'{MOST_BOXES} of {len(boxed):,} boxes' if len(boxed) > MOST_BOXES else '']
    return Panel(name, encode(np.asarray(canvas), lossy=True), keys=[*keys, *(('', note) for note in notes if note)])


def _paint(pixels: np.ndarray, label: np.ndarray, colors: Dict[int, Tuple[int, ...]]) -> np.ndarray:
    """Return an image with a label map of any size painted over it; invalid pixels stay visible if they are few."""
    height, width = pixels.shape[:2]

    def fit(plane: np.ndarray) -> np.ndarray:
        rows, columns = (np.arange(n) * side // n for n, side in zip((height, width), plane.shape))
        return np.asarray(plane[rows][:, columns])

    values, places = np.unique(fit(label), return_inverse=True)
    table = np.array([colors[value] for value in values.tolist()], np.float64)
    painted = (0.45 * pixels + 0.55 * table[places.reshape(height, width)]).astype(np.uint8)
    invalid = [value for value, color in colors.items() if color == LOUD]
    painted[fit(shrink_mask(np.isin(label, invalid)))] = LOUD
    return painted
