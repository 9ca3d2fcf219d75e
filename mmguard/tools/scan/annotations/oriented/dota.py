"""One text of DOTA: ``x1 y1 x2 y2 x3 y3 x4 y4 class difficulty`` in each line, as MMRotate reads it."""

from __future__ import annotations

import io
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from mmguard.tools.scan.annotations.coco_records import is_writable
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.oriented.quads import Quad, finite, pairs, shape_of_quad
from mmguard.tools.scan.annotations.shape_records import ShapeFile, read_bytes

#: What MMRotate's splitter gives to objects that the edge of a tile cuts.
CUT_BY_EDGE = 2
#: Above it, MMRotate ignores an object; so by default none.
DIFF_THR = 100
MARK = b'\xef\xbb\xbf'
#: Lines ahead of the objects: ``imagesource:GoogleEarth``, ``gsd:0.146``.
_HEADER = re.compile(r'\s*[A-Za-z][A-Za-z ]*:')
_COORDINATES = 8
#: Fractions may lie a little outside of the image.
_SLACK = 2.0

#: What is wrong with a row, as MG176 knows it.
HEADER = 'a line is a header, or blank: mmrotate stops there'
BEGINS_WITH_MARK = 'the label file begins with a byte order mark: mmrotate stops there'
SHORT = 'a row has fewer columns than 8 numbers and a class: mmrotate stops there'
NO_NUMBER = 'a coordinate is no finite number'
YOLO = 'a row begins with the class, as YOLO writes it: mmrotate stops there'
COMMAS = 'a row has commas between its columns: mmrotate stops there'
BLANK = 'a class has a blank in its name: mmrotate takes the first word'
NO_DIFFICULTY = 'a row has no difficulty behind the class: mmrotate stops there'
DIFFICULTY = 'the difficulty is no whole number: mmrotate stops there'


class Row(NamedTuple):
    """A row as it is meant.

    Attributes:
        numbers (tuple[float]): The coordinates.
        label (str): The class.
        difficulty (int): 0 where it does not say.
        fault (str): What MMRotate does not take; empty: nothing.
    """

    numbers: Tuple[float, ...]
    label: str
    difficulty: int
    fault: str = ''


def row_of(line: str) -> Tuple[Optional[Row], str]:
    """What a line stands for; ``None`` and why, where it is no object. Nothing and no reason: a header."""
    words, fault = line.split(), ''
    if not words or _HEADER.match(line):
        return None, ''
    if len(words) <= _COORDINATES and ',' in line:
        words, fault = re.split(r'[,\s]+', line.strip(', \t\r\n')), COMMAS
    if len(words) <= _COORDINATES:
        return None, SHORT
    numbers = finite(words[:_COORDINATES])
    if numbers is None:
        return None, NO_NUMBER
    label, rest = words[_COORDINATES], words[_COORDINATES + 1 :]
    if not rest:
        last = finite([label])
        if last is not None and max(*numbers[1:], *last) <= _SLACK:
            return None, YOLO
        return Row(numbers, label, 0, fault or NO_DIFFICULTY), ''
    difficulty, end = _whole(rest[0]), _whole(rest[-1])
    if difficulty is None and end is not None:
        return Row(numbers, ' '.join([label, *rest[:-1]]), end, fault or BLANK), ''
    if difficulty is None:
        return Row(numbers, label, 0, fault or DIFFICULTY), ''
    return Row(numbers, label, difficulty, fault), ''


def _whole(text: str) -> Optional[int]:
    try:
        return int(text)
    except ValueError:
        return None


def lines_of(text: bytes) -> List[str]:
    """The lines of a file, as Python opens it.

    Raises:
        UnicodeDecodeError: It is not UTF-8.
    """
    return io.StringIO(text.decode('utf-8-sig'), newline=None).readlines()


def read_dota(
    path: str, source: str, faults: Faults, diff_thr: int = DIFF_THR, headers: bool = True
) -> Optional[ShapeFile]:
    """Reads a file; never raises. An empty one says that nothing is in its image.

    Args:
        path (str): The file.
        source (str): How messages name it.
        faults (Faults): Takes what is wrong; ``None`` is returned where that is all of it.
        diff_thr (int): More difficult objects are ignored.
        headers (bool): Whether it may have headers, as DOTA itself has them, and blank lines.
    """
    text = read_bytes(path, source, faults, may_be_empty=True)
    if text is None:
        return None
    try:
        lines = lines_of(text)
    except UnicodeDecodeError:
        faults.add('is not UTF-8: mmrotate stops there', source)
        return None
    if text.startswith(MARK):
        faults.add(BEGINS_WITH_MARK, source)
    shapes = []
    first: Dict[Tuple[object, ...], int] = {}
    for number, line in enumerate(lines, 1):
        row, why = row_of(line)
        if row is None and (why or not headers):
            faults.add(why or HEADER, f'{source}: line {number}: {short(line.strip())}')
        if row is None:
            continue
        if row.fault:
            faults.add(row.fault, f'{source}: line {number}: {short(line.strip())}')
        if not is_writable(row.label):
            continue
        quad = Quad(row.label, pairs(row.numbers), row.difficulty >= CUT_BY_EDGE, row.difficulty > diff_thr)
        shape = shape_of_quad(quad, number)
        shapes.append(shape._replace(again=first.setdefault((row.label, *row.numbers), number) != number))
    return ShapeFile(source, '', None, '', shapes)


def is_dota_text(head: bytes) -> Optional[bool]:
    """Whether the beginning of a text is one of DOTA; ``None`` where it says nothing."""
    try:
        lines = lines_of(head.rpartition(b'\n')[0] if head.count(b'\n') else head)
    except UnicodeDecodeError:
        return False
    said = [line for line in lines if line.strip()]
    if not said:
        return None
    if said[0].lower().startswith(('imagesource:', 'gsd:')):
        return True
    rows = [row for row, _ in map(row_of, said[:20]) if row is not None and row.fault != COMMAS]
    return any(finite([row.label]) is None for row in rows)
