"""YOLO label files and their images, with rows interpreted as by ultralytics.

Also the settings and the result of one task of a scan."""

from __future__ import annotations

import importlib.util
import os
import warnings
from dataclasses import dataclass
from math import isfinite
from typing import BinaryIO, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from mmguard.files.regular import open_regular
from mmguard.formats.faults import CRASHES, NAMED, Examples
from mmguard.formats.files import FILES
from mmguard.formats.yolo.listing import TextItem
from mmguard.text import shorten

#: Rounding that ultralytics tolerates on either side of [0, 1].
SLACK = 0.01
#: A coordinate above this is in pixels, not a fraction of the image.
PIXELS = 2.0
#: Flags of a row, which are added up.
IS_BEYOND, IS_IN_PIXELS = 1, 2
#: Number of columns of a box and of an oriented box: the class and two, or four, points.
BOX, CORNERS = 5, 9
#: Floats represent integers exactly up to this.
_LARGEST_ID = 2**53

#: Index of the file, line, class, two corners, number of columns, flags.
Row = Tuple[float, ...]
COLUMNS = 9


class TextRows(NamedTuple):
    """Rows of label files."""

    rows: List[Row]  #: Readable rows.
    refused: Dict[str, Examples]  #: Reason why rows are refused -> (index of the file, line, the row).
    refused_in: Set[int]  #: Indices of the files with refused rows.


def add_rows(text: bytes, number: int, kpt_shape: Optional[Tuple[int, int]], into: TextRows) -> None:
    """Read the rows of a label file; ``number`` is its index in the data set."""
    for line, words in enumerate(map(bytes.split, text.splitlines()), 1):
        if not words:
            continue
        try:
            values = [*map(float, words)]
            why = fault_of(values, kpt_shape)
        except ValueError:
            values, why = [], _no_number(words[0])
        if why:
            shown = shorten(b' '.join(words[:8]).decode('utf-8', 'replace'))
            into.refused.setdefault(why, Examples()).add((number, line, shown))
            into.refused_in.add(number)
            continue
        into.rows.append((number, line, *row_of(values, kpt_shape)))


def _no_number(first: bytes) -> str:
    if first.startswith(b'\xef\xbb\xbf'):
        return 'the label file begins with a byte order mark: ultralytics cannot read the number there'
    return 'a value in the row is not a number'


def fault_of(values: List[float], kpt_shape: Optional[Tuple[int, int]]) -> str:
    """Return the reason why a row cannot be read; empty if it can."""
    width = len(values)
    if kpt_shape is not None:
        wanted = BOX + kpt_shape[0] * kpt_shape[1]
        if width != wanted:
            return f'the row does not have the {wanted} columns of kpt_shape={list(kpt_shape)}'
    elif _is_of_keypoints(values):
        return 'the row is of keypoints (x, y, visibility after a box): data.yaml needs kpt_shape, and the task is pose'
    elif width == BOX + 1:
        return 'the row has 6 columns: nothing may follow a box, not even a confidence'
    elif width < BOX:
        return 'the row has fewer than 5 columns'
    elif width % 2 == 0:
        return 'the number of columns is even: an outline has a class, and pairs of numbers'
    # A sum is not finite if one of the numbers is not.
    if not isfinite(sum(values)):
        return 'a number is nan or infinite'
    if values[0] % 1 or abs(values[0]) > _LARGEST_ID:
        return 'the class id is not an integer'
    return ''


def _is_of_keypoints(values: List[float]) -> bool:
    """Return True if the class is followed by a box and points: outlines have no coordinate of 2."""
    seen, points = values[BOX + 2 :: 3], [*values[1:BOX], *values[BOX::3], *values[BOX + 1 :: 3]]
    whole = len(values) > BOX and (len(values) - BOX) % 3 == 0 and {2.0} <= set(seen) <= {0.0, 1.0, 2.0}
    return whole and min(points) >= -SLACK and max(points) <= 1 + SLACK


def row_of(values: List[float], kpt_shape: Optional[Tuple[int, int]]) -> Row:
    """Return class, corners, number of columns and flags of a row."""
    label, width = values[0], len(values)
    if width == BOX or kpt_shape is not None:
        _, x, y, w, h = values[:BOX]
        corners = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        points = values[1:]
        if kpt_shape is not None:
            # Ultralytics checks only the points. A third number is the visibility of a point.
            keypoints = values[BOX:]
            points = [*values[1:BOX], *keypoints[0 :: kpt_shape[1]], *keypoints[1 :: kpt_shape[1]]]
    else:
        points = values[1:]
        xs, ys = points[0::2], points[1::2]
        corners = (min(xs), min(ys), max(xs), max(ys))
    low, high = min(points), max(points)
    flags = IS_BEYOND if low < -SLACK or high > 1 + SLACK else 0
    if high > PIXELS:
        flags += IS_IN_PIXELS
    return (label, *corners, width, flags)


def as_columns(rows: List[Row]) -> np.ndarray:
    """Return rows as float64 (N, 9)."""
    return np.array(rows, float).reshape(-1, COLUMNS)


#: Minimum side in pixels: ultralytics rejects smaller images.
SMALLEST = 10
TOO_SMALL = f'cannot be trained on: an image below {SMALLEST} pixels'
NO_END = 'is damaged: a JPEG without its end mark, which ultralytics rewrites in place'
_DAMAGED = 'cannot be decoded'
_START, _END = b'\xff\xd8', b'\xff\xd9'
#: JPEG segments that contain the size: all frame markers, but not the other markers in their range.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MOST_SEGMENTS = 1000
#: MPO is opened as JPEG: pillow has no separate format name for it.
_FORMATS = ('JPEG', 'PNG', 'BMP', 'TIFF', 'WEBP')
#: A label file has a few kilobytes.
_LARGEST = 64 << 20


def image_fault(path: str) -> str:
    """Return the fault of an image; empty if it looks valid without decoding it.

    A JPEG is checked by its segments, other formats with pillow if it is installed.
    """
    try:
        with open_regular(path) as file:
            side = _read_side_of_jpeg(file)
            if side is not None:
                file.seek(-2, os.SEEK_END)
                return TOO_SMALL if side < SMALLEST else '' if file.read(2) == _END else NO_END
    except (OSError, ValueError) as error:
        return f'cannot be opened: {getattr(error, "strerror", None) or error}'
    return _find_fault_with_pillow(path) if importlib.util.find_spec('PIL') is not None else ''


def _read_side_of_jpeg(file: BinaryIO) -> Optional[int]:
    """Return the shorter side from the header; ``None`` if the header is invalid or not of a JPEG."""
    if file.read(2) != _START:
        return None
    for _ in range(_MOST_SEGMENTS):
        head = file.read(4)
        if len(head) < 4 or head[0] != 0xFF:
            return None
        if head[1] in _FRAMES:
            size = file.read(5)
            return min(size[1] << 8 | size[2], size[3] << 8 | size[4]) if len(size) == 5 else None
        file.seek((head[2] << 8 | head[3]) - 2, os.SEEK_CUR)
    return None


def _find_fault_with_pillow(path: str) -> str:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            with Image.open(path, formats=_FORMATS) as image:
                side = min(image.size)
                image.verify()
    except Exception:  # decoders raise many types for a damaged file
        return _DAMAGED
    return TOO_SMALL if side < SMALLEST else ''


class TextsRead(NamedTuple):
    """Result of one task."""

    items: int  #: Number of items.
    columns: np.ndarray  #: float64 (N, 9), the rows.
    refused: Dict[str, Examples]  #: See ``TextRows``.
    refused_in: Set[int]
    faults: Dict[str, Examples]  #: Fault of a file -> (index of the file, True for the image).
    faulty: Set[Tuple[int, bool]]  #: (Index of the file, True for the image) of every such file.


@dataclass(frozen=True)
class TextSettings:
    """Settings of a task, which the engine passes to a process together with label files."""

    kpt_shape: Optional[Tuple[int, int]] = None  #: ``kpt_shape`` of the data.yaml.

    def scan(self, items: List[TextItem]) -> TextsRead:
        """Read some label files and check their images, as one task."""
        found = TextRows([], {}, set())
        faults: Dict[str, Examples] = {}
        faulty: Set[Tuple[int, bool]] = set()
        for number, path, image in items:
            for why, of_image in (
                (self._add(path, number, found) if path else '', False),
                (image_fault(image) if image else '', True),
            ):
                if why:
                    faults.setdefault(why, Examples(NAMED)).add((number, of_image))
                    faulty.add((number, of_image))
        return TextsRead(len(items), as_columns(found.rows), found.refused, found.refused_in, faults, faulty)

    def report_crash(self, item: TextItem) -> TextsRead:
        """Return the result for a file that crashed the process reading it."""
        one = Examples(NAMED)
        one.add((item.number, not item.path))
        return TextsRead(1, as_columns([]), {}, set(), {f'cannot be read: {CRASHES}': one}, set(one.first))

    def _add(self, path: str, number: int, into: TextRows) -> str:
        try:
            with FILES.open(path) as file:
                text = file.read(_LARGEST + 1)
        except (OSError, ValueError) as error:
            return f'cannot be read: {getattr(error, "strerror", None) or error}'
        if len(text) > _LARGEST:
            return f'is larger than {_LARGEST >> 20} MiB'
        add_rows(text, number, self.kpt_shape, into)
        return ''
