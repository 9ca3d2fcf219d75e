"""The rows of one label file, as ultralytics reads them."""

from __future__ import annotations

from math import isfinite
from typing import Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from mmguard.tools.scan.annotations.faults import short
from mmguard.tools.scan.examples import Examples

#: What ultralytics lets pass for rounding, on either side of [0, 1].
SLACK = 0.01
#: No fraction of an image: it was written in pixels.
PIXELS = 2.0
#: What a row shows beside its numbers, added up.
IS_BEYOND, IS_IN_PIXELS = 1, 2
#: Columns of a box, and of an oriented one: the class and two, or four, points.
BOX, CORNERS = 5, 9
_UTF16 = 'the label file is UTF-16: ultralytics reads no number there'
#: From here on whole numbers are no longer exact.
_LARGEST_ID = 2**53

#: Of a row: place of its file, line, class, two corners, columns, what it shows.
Row = Tuple[float, ...]
COLUMNS = 9


class TextRows(NamedTuple):
    """What some label files hold.

    Attributes:
        rows (list[Row]): The rows that can be read.
        refused (dict[str, Examples]): Why others cannot -> (place of the file, line, the row).
        refused_in (set[int]): The places of their files.
    """

    rows: List[Row]
    refused: Dict[str, Examples]
    refused_in: Set[int]


def add_rows(text: bytes, number: int, kpt_shape: Optional[Tuple[int, int]], into: TextRows) -> None:
    """Reads a label file.

    Args:
        text (bytes): It.
        number (int): The place of its file.
        kpt_shape (tuple, optional): Points and numbers of each, where rows have keypoints.
        into (TextRows): Takes its rows.
    """
    readable = as_utf8(text)
    for line, words in enumerate(map(bytes.split, readable.splitlines()), 1):
        if not words:
            continue
        try:
            values = [*map(float, words)]
            why = fault_of(values, kpt_shape) if readable is text else _UTF16
        except ValueError:
            values, why = [], _no_number(words[0])
        if why:
            shown = short(b' '.join(words[:8]).decode('utf-8', 'replace'))
            into.refused.setdefault(why, Examples()).add((number, line, shown))
            into.refused_in.add(number)
            continue
        into.rows.append((number, line, *row_of(values, kpt_shape)))


def as_utf8(text: bytes) -> bytes:
    """A label file that is UTF-16, as Windows writes it, in UTF-8; any other as it is."""
    if text[:2] not in (b'\xff\xfe', b'\xfe\xff'):
        return text
    try:
        return text.decode('utf-16').encode()
    except UnicodeDecodeError:
        return text


def _no_number(first: bytes) -> str:
    if first.startswith(b'\xef\xbb\xbf'):
        return 'the label file begins with a byte order mark: ultralytics reads no number there'
    return 'something in the row is no number'


def fault_of(values: List[float], kpt_shape: Optional[Tuple[int, int]]) -> str:
    """Why a row cannot be read; empty where it can."""
    width = len(values)
    if kpt_shape is not None:
        wanted = BOX + kpt_shape[0] * kpt_shape[1]
        if width != wanted:
            return f'the row has not the {wanted} columns of kpt_shape={list(kpt_shape)}'
    elif width == BOX + 1:
        return 'the row has 6 columns: behind a box there is nothing, no confidence either'
    elif width < BOX:
        return 'the row has fewer than 5 columns'
    elif width % 2 == 0:
        return 'the number of columns is even: an outline has a class, and pairs of numbers'
    # A sum is not finite where one of the numbers is not.
    if not isfinite(sum(values)):
        return 'a number is nan or infinite'
    if values[0] % 1 or abs(values[0]) > _LARGEST_ID:
        return 'the class id is no whole number'
    return ''


def row_of(values: List[float], kpt_shape: Optional[Tuple[int, int]]) -> Row:
    """Return class, corners, columns and what it shows."""
    label, width = values[0], len(values)
    if width == BOX or kpt_shape is not None:
        _, x, y, w, h = values[:BOX]
        corners = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        points = values[1:]
        if kpt_shape is not None:
            # Ultralytics looks at the points alone. A third number says whether a point is seen.
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
    """float64 (N, 9)."""
    return np.array(rows, float).reshape(-1, COLUMNS)
