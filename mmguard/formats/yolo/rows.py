"""Reader of YOLO label files as ultralytics interprets them, correction of their rows, and a check of their images."""

from __future__ import annotations

import importlib.util
import math
import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass, field
from math import isfinite
from typing import BinaryIO, Dict, Iterator, List, Optional, Set, Tuple

import numpy as np

from mmguard.files.images import open_image
from mmguard.files.regular import open_regular
from mmguard.formats.faults import CRASHES, Examples
from mmguard.formats.files import FILES
from mmguard.formats.format import Corrected, NotCorrected
from mmguard.formats.options import FixOptions
from mmguard.formats.yolo.data_yaml import DataYaml
from mmguard.formats.yolo.listing import TextItem
from mmguard.labels.rules import apply_label_map
from mmguard.text import quantity, shorten

#: Rounding that ultralytics tolerates on either side of [0, 1].
SLACK = 0.01
#: A coordinate above this value is in pixels, not a fraction of the image.
PIXELS = 2.0
#: Flags of a row, combined by addition: a coordinate is beyond the image, a coordinate is in pixels.
IS_BEYOND, IS_IN_PIXELS = 1, 2
#: Number of columns of a box (class, center, size) and of an oriented box (class, four points).
BOX, CORNERS = 5, 9
#: Floats represent integers exactly up to this value.
_LARGEST_ID = 2**53

#: Columns of a row: index of the file, line, class, two corners, number of columns, flags.
Row = Tuple[float, ...]
COLUMNS = 9


@dataclass
class TextsRead:
    """Rows and faults of label files, of one task or of all tasks."""

    items: int = 0  #: Number of read :class:`TextItem` objects.
    columns: List[np.ndarray] = field(default_factory=list)  #: float64 (N, 9), the readable rows of each task.
    #: Reason why rows are refused -> (index of the file, line, the row).
    refused: Dict[str, Examples] = field(default_factory=dict)
    refused_in: Set[int] = field(default_factory=set)  #: Indices of the files with refused rows.
    faults: Dict[str, Examples] = field(default_factory=dict)  #: Fault -> (index of the file, True for its image).
    faulty: Set[Tuple[int, bool]] = field(default_factory=set)  #: (Index, True for the image) of all these files.

    def refuse(self, reason: str, number: int, line: int, row: str) -> None:
        self.refused.setdefault(reason, Examples()).add((number, line, row))
        self.refused_in.add(number)

    def add_fault(self, reason: str, number: int, of_image: bool) -> None:
        self.faults.setdefault(reason, Examples()).add((number, of_image))
        self.faulty.add((number, of_image))

    def merge(self, other: TextsRead) -> None:
        self.columns += other.columns
        self.refused_in |= other.refused_in
        self.faulty |= other.faulty
        for own, others in ((self.refused, other.refused), (self.faults, other.faults)):
            for what, one in others.items():
                own.setdefault(what, Examples()).merge(one)


def read_rows(text: bytes, number: int, kpt_shape: Optional[Tuple[int, int]], result: TextsRead) -> Iterator[Row]:
    """Yield the readable rows of label file ``number``, and add all other rows to ``result`` as refused."""
    for line, words in enumerate(map(bytes.split, text.splitlines()), 1):
        if not words:
            continue
        try:
            values = [*map(float, words)]
            why = find_row_fault(values, kpt_shape)
        except ValueError:
            values, why = [], _describe_non_number(words[0])
        if why:
            result.refuse(why, number, line, shorten(b' '.join(words[:8]).decode('utf-8', 'replace')))
        else:
            yield (number, line, *build_row(values, kpt_shape))


def _describe_non_number(first: bytes) -> str:
    if first.startswith(b'\xef\xbb\xbf'):
        return 'the label file begins with a byte order mark: ultralytics cannot read the first number'
    return 'a value in the row is not a number'


def find_row_fault(values: List[float], kpt_shape: Optional[Tuple[int, int]]) -> str:
    """Return the reason why a row cannot be read, or '' if the row is readable."""
    width = len(values)
    if kpt_shape is not None:
        wanted = BOX + kpt_shape[0] * kpt_shape[1]
        if width != wanted:
            return f'the row does not have the {wanted} columns of kpt_shape={list(kpt_shape)}'
    elif _is_of_keypoints(values):
        return (
            'the row holds keypoints (a box, then x, y, visibility): set kpt_shape in data.yaml and train the task pose'
        )
    elif width == BOX + 1:
        return 'the row has 6 columns: a box has 5, and no confidence may follow'
    elif width < BOX:
        return 'the row has fewer than 5 columns'
    elif width % 2 == 0:
        return 'the number of columns is even: an outline needs a class and pairs of numbers'
    # A sum is not finite if one of the numbers is not.
    if not isfinite(sum(values)):
        return 'a number is nan or infinite'
    if values[0] % 1 or abs(values[0]) > _LARGEST_ID:
        return 'the class id is not an integer'
    return ''


def _is_of_keypoints(values: List[float]) -> bool:
    """Return True if a box and keypoints (x, y, visibility) follow the class; a visibility of 2 identifies them."""
    seen, points = values[BOX + 2 :: 3], [*values[1:BOX], *values[BOX::3], *values[BOX + 1 :: 3]]
    whole = len(values) > BOX and (len(values) - BOX) % 3 == 0 and {2.0} <= set(seen) <= {0.0, 1.0, 2.0}
    return whole and min(points) >= -SLACK and max(points) <= 1 + SLACK


def build_row(values: List[float], kpt_shape: Optional[Tuple[int, int]]) -> Row:
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


#: Minimum side in pixels: ultralytics rejects smaller images.
SMALLEST = 10
TOO_SMALL_FAULT = f'cannot be trained on: a side of the image is below {SMALLEST} pixels'
NO_END_FAULT = 'is damaged: a JPEG without its end mark; ultralytics rewrites such files in place'
_DAMAGED = 'cannot be decoded'
_END_OF_JPEG = b'\xff\xd9'
#: Formats that pillow may open; MPO is opened as JPEG, since pillow has no separate name for opening it.
_FORMATS = ('JPEG', 'PNG', 'BMP', 'TIFF', 'WEBP')
#: Maximum size of a label file in bytes; usually it has a few kilobytes.
_LARGEST = 64 << 20


def find_image_fault(path: str) -> str:
    """Return the fault of an image, or ``''``, without decoding it. Without pillow, only test if the file opens."""
    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            return _find_fault(file) if importlib.util.find_spec('PIL') is not None else ''
    except (OSError, ValueError) as error:
        return f'cannot be opened: {getattr(error, "strerror", None) or error}'


def _find_fault(file: BinaryIO) -> str:
    try:
        with open_image(file, formats=_FORMATS) as image:
            side, is_whole = min(image.size), True
            if image.format in ('JPEG', 'MPO'):
                file.seek(-2, os.SEEK_END)
                is_whole = file.read(2) == _END_OF_JPEG
            else:
                image.verify()
    except Exception:  # decoders raise many types for a damaged file
        return _DAMAGED
    return TOO_SMALL_FAULT if side < SMALLEST else '' if is_whole else NO_END_FAULT


@dataclass(frozen=True)
class TextTask:
    """Task that reads YOLO label files and checks their images."""

    kpt_shape: Optional[Tuple[int, int]] = None  #: ``kpt_shape`` of the data.yaml.

    def scan(self, items: List[TextItem]) -> TextsRead:
        """Read the label files of one task, and check their images."""
        read = TextsRead(len(items))
        rows: List[Row] = []
        for number, path, image in items:
            try:
                rows += read_rows(FILES.read(path, _LARGEST) if path else b'', number, self.kpt_shape, read)
            except (OSError, ValueError) as error:
                read.add_fault(f'cannot be read: {getattr(error, "strerror", None) or error}', number, False)
            why = find_image_fault(image) if image else ''
            if why:
                read.add_fault(why, number, True)
        read.columns = [np.array(rows, float).reshape(-1, COLUMNS)]
        return read

    def report_crash(self, item: TextItem) -> TextsRead:
        """Return the result for a file that crashed the process reading it."""
        read = TextsRead(1)
        read.add_fault(f'cannot be read: {CRASHES}', item.number, not item.path)
        return read


_MARK = b'\xef\xbb\xbf'
_WORDS = {'mark': 'stripped of its BOM', 'cut': 'cut after the box', 'clipped': 'clamped', 'mapped': 'mapped'}
_PATH = re.compile(rb'^path[ \t]*:.*(\r?\n|$)', re.MULTILINE)


def correct_data_yaml(data: bytes, ending: str) -> Corrected:
    """Remove ``path`` from a data.yaml, so that all other paths are relative to the folder of the file."""
    fresh = _PATH.sub(b'', data)
    changes = ['path removed: paths are relative to the folder of this file'] if fresh != data else []
    return Corrected(fresh, ending, changes, {}, {})


def correct_text(data: bytes, options: FixOptions, declared: DataYaml) -> Corrected:
    """Correct the rows of a label file. Valid rows, and rows whose class only the data.yaml rejects, stay unchanged."""
    if options.boxes:
        raise NotCorrected('--boxes does not apply to YOLO, whose rows are not converted')
    counts: Counter = Counter({'mark': int(data.startswith(_MARK))})
    lines: List[bytes] = []
    values: Counter = Counter()
    invalid: Counter = Counter()
    for line in data[len(_MARK) if counts['mark'] else 0 :].splitlines():
        words = line.split()
        if not words:
            continue
        kept, row = _correct_row(words, options, declared.kpt_shape, counts)
        if not kept:
            values[words[0].decode('utf-8', 'replace')] += 1
            continue
        lines.append(row)
        invalid[str(int(kept[0]))] += not 0 <= kept[0] < (options.num_classes or declared.num_classes or math.inf)
    changed = +counts
    if not changed:
        return Corrected(data, '.txt', [], {}, {}, dict(+invalid))
    words_of = [f'{quantity(number, "row")} {_WORDS.get(what, what)}' for what, number in changed.items()]
    return Corrected(
        b''.join(row + b'\n' for row in lines), '.txt', words_of, dict(values), dict(changed), dict(+invalid)
    )


def _correct_row(
    fields: List[bytes], options: FixOptions, kpt_shape: Optional[Tuple[int, int]], counts: Counter
) -> Tuple[List[float], bytes]:
    """Return the corrected numbers of a row and its text; both are empty if the row is dropped."""
    before = sum(counts.values())
    if len(fields) == BOX + 1 and kpt_shape is None:
        fields = fields[:BOX]
        counts['cut'] += 1
    try:
        values = [*map(float, fields)]
    except ValueError:
        values = []
    if not values or find_row_fault(values, kpt_shape):
        counts['dropped (cannot be read)'] += 1
        return [], b''
    label = int(values[0])
    values[0] = apply_label_map(options.label_map, label)
    counts['mapped'] += values[0] != label
    if options.num_classes is not None and not 0 <= values[0] < options.num_classes:
        counts['dropped (label)'] += 1
        return [], b''
    values = _clamp_row(values, kpt_shape, counts)
    if not values:
        counts['dropped (without area)'] += 1
        return [], b''
    if sum(counts.values()) == before:
        return values, b' '.join(fields)
    return values, ' '.join([str(int(values[0])), *(f'{number:.8g}' for number in values[1:])]).encode()


def _clamp_row(values: List[float], kpt_shape: Optional[Tuple[int, int]], counts: Counter) -> List[float]:
    """Move points outside the image to its edge. Return an empty list if no area is left."""
    _, left, top, right, bottom, *_ = build_row(values, kpt_shape)
    is_box = len(values) == BOX or kpt_shape is not None
    points = values[BOX:] if is_box else values[1:]
    step = kpt_shape[1] if kpt_shape is not None else 2
    outside = min(left, top) < -SLACK or max(right, bottom) > 1 + SLACK
    outside = outside or any(not -SLACK <= one <= 1 + SLACK for n, one in enumerate(points) if n % step < 2)
    if outside:
        counts['clipped'] += 1
        left, top, right, bottom = (min(max(side, 0.0), 1.0) for side in (left, top, right, bottom))
        points = [min(max(one, 0.0), 1.0) if n % step < 2 else one for n, one in enumerate(points)]
        box = [(left + right) / 2, (top + bottom) / 2, right - left, bottom - top] if is_box else []
        values = [values[0], *box, *points]
    return values if right > left and bottom > top else []
