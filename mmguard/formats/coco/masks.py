"""Checks of the structure and size of COCO masks. Thin polygons are also drawn, to test if they cover a pixel."""

from __future__ import annotations

import math
from itertools import chain
from typing import Any, List, Sequence, Tuple, Union

import numpy as np

#: Faults of a mask by code, 0 for none. The first fault found is reported.
MASK_FAULTS = (
    '',
    'the mask is missing',
    'neither polygons nor an RLE of "size" and "counts"',
    'a polygon is not a list of finite numbers',
    'a polygon has fewer than 6 numbers, or an odd count',
    'a polygon reaches far beyond the image',
    'the size of an RLE is not that of the image',
    'the counts of an RLE do not add up to its size',
    'an RLE is empty',
    'polygons cover no pixel',
    'too long to be checked',
)
_NONE, _NO_MASK, _NO_NUMBERS, _SHORT, _FAR, OTHER_SIZE, _COUNTS, _EMPTY, _NO_PIXEL, _LONG = range(1, len(MASK_FAULTS))
#: One element per annotation: fault code, bounding corners of its polygons, height and width of its RLE; NaN if
#: missing.
MASK = np.dtype([('fault', np.int8), ('span', float, (4,)), ('size', float, (2,))])
#: Element of an annotation without a mask.
BLANK = np.array((0, np.nan, np.nan), MASK)
#: Minimum number of coordinates of a polygon: mmdet drops shorter ones.
_FEWEST = 6
#: Largest side, in pixels, of thin polygons that are drawn.
_LARGEST_SIDE = 1 << 14
#: Maximum number of points, five per pixel of outline and 64 per corner, that are drawn for a block of the file.
MOST_DRAWN = 1 << 23
#: Maximum number of characters, or of run lengths, of an RLE.
MOST_CHARACTERS = 1 << 22
#: Maximum number of characters of a number in an RLE: 32 bits, 5 per character.
_LONGEST = 7

try:
    from msgspec import Struct
except ImportError:
    RleSize: Any = None
    Rle: Any = None
else:

    class RleSize(Struct, gc=False):  # type: ignore[no-redef]
        """Height and width of a run-length encoded mask (RLE), without its run lengths."""

        size: Tuple[int, int]

    class Rle(RleSize, gc=False):  # type: ignore[no-redef, call-arg]
        """Run-length encoded mask (RLE): run lengths in column order, background first."""

        counts: Union[List[int], str]


def mask_column(masks: Sequence[Any]) -> np.ndarray:
    """Return an array with the fault, extent and RLE size of N masks, (N,) of type :data:`MASK`.

    Args:
        masks (Sequence): N masks, each a list of polygons, an :class:`Rle`, ``None`` or the code of a fault.
    """
    column = np.full(len(masks), BLANK)
    polygons, runs = [], []
    for place, mask in enumerate(masks):
        if isinstance(mask, list) and mask:
            polygons.append(place)
        elif not mask:
            column['fault'][place] = _NONE
        elif isinstance(mask, int):
            column['fault'][place] = mask
        elif len(mask.counts) > MOST_CHARACTERS:
            column['fault'][place] = _LONG
        else:
            runs.append(place)
    if polygons:
        _add_polygons(column, np.array(polygons), [masks[place] for place in polygons])
    if runs:
        _add_runs(column, np.array(runs), [masks[place] for place in runs])
    return column


def size_column(masks: Sequence[Any]) -> np.ndarray:
    """Return an array like :func:`mask_column`, (N,), in which only the sizes of RLEs are set."""
    column = np.full(len(masks), BLANK)
    for place, mask in enumerate(masks):
        if isinstance(mask, RleSize):
            column['size'][place] = _clip_size(mask)
    return column


def check_mask(value: Any) -> Any:
    """Convert an untyped ``segmentation`` for :func:`mask_column`, to polygons, an Rle, ``None`` or a fault code."""
    if not value:  # mmdet does not check further
        return None
    if isinstance(value, list):
        return value if all(isinstance(one, list) and all(map(_is_number, one)) for one in value) else _NO_NUMBERS
    size, counts = (value.get('size'), value.get('counts')) if isinstance(value, dict) else (None, None)
    if not isinstance(size, list) or len(size) != 2 or not all(map(_is_whole, size)):
        return _NO_MASK
    if isinstance(counts, str) or (isinstance(counts, list) and all(map(_is_whole, counts))):
        return Rle((size[0], size[1]), counts)
    return _NO_MASK if counts is None or not isinstance(counts, list) else _COUNTS


def find_mask_faults(column: np.ndarray, extents: np.ndarray) -> np.ndarray:
    """Return the fault code of each mask, given the size of its image: int8 (N,), an index of :data:`MASK_FAULTS`.

    Args:
        column (np.ndarray): (N,) of type :data:`MASK`, from :func:`mask_column`.
        extents (np.ndarray): (N, 2), height and width of each mask's image; infinite if unknown.
    """
    faults = column['fault'].copy()
    sound = faults == 0
    with np.errstate(invalid='ignore'):
        sides = extents[:, ::-1]
        far = ((column['span'][:, :2] < -sides) | (column['span'][:, 2:] > 2 * sides)).any(axis=1)
        known = np.isfinite(extents).all(axis=1) & ~np.isnan(column['size'][:, 0])
        other = known & (column['size'] != extents).any(axis=1)
    faults[sound & far] = _FAR
    faults[(sound | (faults == _COUNTS) | (faults == _EMPTY)) & other] = OTHER_SIZE
    return faults


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _add_polygons(column: np.ndarray, places: np.ndarray, masks: List[List[List[float]]]) -> None:
    parts = list(chain.from_iterable(masks))
    lengths = np.fromiter(map(len, parts), np.int64, len(parts))
    owner = np.repeat(places, np.fromiter(map(len, masks), np.int64, len(masks)))
    usable = (lengths >= _FEWEST) & (lengths % 2 == 0)
    column['fault'][owner[~usable]] = _SHORT
    if not usable.all():
        parts = [part for part, use in zip(parts, usable.tolist()) if use]
        lengths, owner = lengths[usable], owner[usable]
    if not parts:
        return
    try:
        points = np.fromiter(chain.from_iterable(parts), float, int(lengths.sum())).reshape(-1, 2)
    except OverflowError:  # an int of hundreds of digits
        points = np.array([as_float(number) for part in parts for number in part]).reshape(-1, 2)
    firsts, starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]) // 2, _find_firsts(owner)
    following = np.arange(1, len(points) + 1)
    following[np.append(firsts[1:], len(points)) - 1] = firsts
    with np.errstate(all='ignore'):
        crossed = points[:, 0] * points[following, 1] - points[:, 1] * points[following, 0]
        areas = np.add.reduceat(np.abs(np.add.reduceat(crossed, firsts)) / 2, np.flatnonzero(starts))
        drawn = np.add.reduceat(64 + 5 * np.abs(points[following] - points).max(axis=1), firsts[starts])
    owner = owner[starts]
    column['span'][owner, :2] = np.minimum.reduceat(points, firsts[starts])
    column['span'][owner, 2:] = np.maximum.reduceat(points, firsts[starts])
    spans = column['span'][owner]
    sides = spans[:, 2:] - spans[:, :2]
    thin = (areas <= sides.sum(axis=1)) & (sides < _LARGEST_SIDE).all(axis=1) & (column['fault'][owner] == 0)
    left = float(MOST_DRAWN)
    for place, span, cost in zip(owner[thin].tolist(), spans[thin], drawn[thin].tolist()):
        if cost > left:
            column['fault'][place] = _LONG
            continue
        left -= cost
        if not _covers_a_pixel(masks[int(np.searchsorted(places, place))], span):
            column['fault'][place] = _NO_PIXEL


def _covers_a_pixel(polygons: List[List[float]], span: np.ndarray) -> bool:
    """Return True if polygons cover a pixel when loaders draw them, or if pycocotools is not installed.

    Args:
        span (np.ndarray): float64 (4,), bounding corners of the polygons.
    """
    try:
        from pycocotools import mask
    except ImportError:
        return True
    left, top, right, bottom = np.append(np.floor(span[:2]), np.ceil(span[2:]) + 1).astype(int).tolist()
    shifted = [(np.reshape(one, (-1, 2)) - (left, top)).ravel().tolist() for one in polygons]
    return bool(mask.area(mask.merge(mask.frPyObjects(shifted, bottom - top, right - left))))


def as_float(number: Any) -> float:
    """Convert a number to float. An int that is too large for float becomes infinite."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _add_runs(column: np.ndarray, places: np.ndarray, masks: List[Any]) -> None:
    written = np.array([isinstance(mask.counts, str) for mask in masks])
    total = np.full(len(masks), -1, np.int64)
    inside = np.zeros(len(masks), np.int64)
    if written.any():
        total[written], inside[written] = _sum_texts([mask.counts for mask in masks if isinstance(mask.counts, str)])
    for place in np.flatnonzero(~written).tolist():
        counts = masks[place].counts
        if min(counts, default=0) >= 0:
            total[place], inside[place] = min(sum(counts), 1 << 62), min(sum(counts[1::2]), 1 << 62)
    sizes = np.array(list(map(_clip_size, masks)), np.int64)
    column['size'][places] = sizes
    faults = np.where(inside == 0, _EMPTY, 0)
    column['fault'][places] = np.where((total != sizes.prod(axis=1)) | (sizes < 0).any(axis=1), _COUNTS, faults)


def _clip_size(mask: Any) -> List[int]:
    return [max(-1, min(side, 1 << 31)) for side in mask.size]


def _sum_texts(texts: Sequence[str]) -> Tuple[np.ndarray, np.ndarray]:
    """Return the numbers of pixels (-1 if damaged) and of object pixels of K compressed RLE texts, int64 (K,) each.

    A character minus '0' holds 5 bits and a continuation bit; from the fourth number on, a number is stored as its
    difference from the number two places before.
    """
    total, inside = np.full(len(texts), -1, np.int64), np.zeros(len(texts), np.int64)
    sound = [place for place, text in enumerate(texts) if text and text.isascii()]
    if not sound:
        return total, inside
    lengths = np.array([len(texts[place]) for place in sound])
    bits = np.frombuffer(''.join([texts[place] for place in sound]).encode(), np.uint8).astype(np.int64) - ord('0')
    ends = np.cumsum(lengths)
    # End a number at the end of its text, so that a damaged text does not shift the numbers of the next one.
    last = (bits & 32) == 0
    damaged = np.logical_or.reduceat((bits < 0) | (bits > 63), ends - lengths) | ~last[ends - 1]
    last[ends - 1] = True
    closing = np.flatnonzero(last)
    opening = np.concatenate([[0], closing[:-1] + 1])
    size = closing - opening + 1
    owner = np.searchsorted(ends, closing, side='right')
    damaged[owner[size > _LONGEST]] = True
    digit = np.arange(len(bits)) - np.repeat(opening, size)
    numbers = np.add.reduceat((bits & 31) << (5 * digit.clip(0, _LONGEST)), opening)
    numbers -= ((bits[closing] & 16) > 0) * (np.int64(1) << (5 * size.clip(0, _LONGEST)))
    first = np.flatnonzero(_find_firsts(owner))
    place = np.arange(len(owner)) - np.repeat(first, np.diff(np.append(first, len(owner))))
    for parity in (0, 1):
        chosen = (place % 2 == parity) & (place > 0)
        numbers[chosen] = _sum_by_owner(numbers[chosen], owner[chosen])
    damaged[owner[numbers < 0]] = True
    total[sound] = np.where(damaged, -1, np.add.reduceat(numbers, first))
    inside[sound] = np.add.reduceat(np.where(place % 2, numbers, 0), first)
    return total, inside


def _sum_by_owner(numbers: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Return the running sums of ``numbers``, which restart at 0 wherever ``owner`` changes."""
    if not len(numbers):
        return numbers
    sums, first = np.cumsum(numbers), np.flatnonzero(_find_firsts(owner))
    return sums - np.repeat(sums[first] - numbers[first], np.diff(np.append(first, len(numbers))))


def _find_firsts(owner: np.ndarray) -> np.ndarray:
    """Return bool (N,), True for the first element and for each element that differs from its predecessor."""
    return np.concatenate([[True], owner[1:] != owner[:-1]])
