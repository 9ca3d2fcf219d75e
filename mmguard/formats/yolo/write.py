"""Correction of YOLO label files: unreadable rows, and rows outside the image."""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import List, Optional, Tuple

from mmguard.formats.correction import Corrected, NotCorrected
from mmguard.formats.options import FixOptions
from mmguard.formats.yolo.data_yaml import DataYaml
from mmguard.formats.yolo.rows import BOX, SLACK, build_row, find_row_fault
from mmguard.labels.rules import apply_label_map
from mmguard.text import quantity

_MARK = b'\xef\xbb\xbf'
_WORDS = {'mark': 'byte order mark cut', 'cut': 'cut after the box', 'clipped': 'clamped', 'mapped': 'mapped'}
_PATH = re.compile(rb'^path[ \t]*:.*(\r?\n|$)', re.MULTILINE)


def correct_data_yaml(data: bytes, ending: str) -> Corrected:
    """Remove ``path`` from a data.yaml, so that paths are relative to the copy."""
    fresh = _PATH.sub(b'', data)
    changes = ['path left out: the folder of this file'] if fresh != data else []
    return Corrected(fresh, ending, changes, {}, {})


def correct_text(data: bytes, options: FixOptions, declared: DataYaml) -> Corrected:
    """Correct the rows of a label file; a valid one is copied unchanged, and so is a class that is not declared."""
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
    """Return the numbers of a row and its text; an empty list means that it is dropped."""
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
    """Move points outside the image to its edge; return an empty list if no area is left."""
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
