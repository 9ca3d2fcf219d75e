"""Mends VOC XML: objects with an unknown name or an invalid box."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from typing import List, Optional

import numpy as np

from mmguard.fix.boxes import Corners, clamped, fault_of, numbers
from mmguard.fix.maps import Mended
from mmguard.fix.options import FixOptions, NotMended
from mmguard.instances import InstanceRule
from mmguard.words import counted

_SIDES = ('xmin', 'ymin', 'xmax', 'ymax')
_INF = float('inf')


def mend_voc(data: bytes, options: FixOptions) -> Mended:
    """Clamps boxes into the image, then leaves out objects that no training can use.

    VOC counts pixels from 1; a box is judged as mmdet loads it, minus one.

    Args:
        data (bytes): The file.
        options (FixOptions): ``classes`` are the names that are valid; ``None``: any.

    Raises:
        NotMended: No VOC annotation, or one with a document type (which could hold anything).
    """
    root = _read(data)
    width, height = (_number(root.findtext(f'size/{side}')) for side in ('width', 'height'))
    objects = root.findall('object')
    counts: Counter = Counter()
    for item in objects:
        counts['clipped'] += _clamp(item, width, height)
    names = [(item.findtext('name') or '').strip() for item in objects]
    known = sorted(set(names) - {''}) if options.classes is None else list(options.classes)
    labels = np.array([known.index(name) if name in known else -1 for name in names], dtype=np.int64)
    faults = np.array([fault_of(_corners(item), width, height) for item in objects], dtype=np.int64)
    mended = InstanceRule(max(len(known), 1), 'drop').mend(labels, None, faults)
    counts.update(mended.tally.reasons)
    counts = +counts
    if not counts:
        return Mended(data, '.xml', [], {}, {})
    dropped = [] if mended.dropped is None else np.flatnonzero(mended.dropped).tolist()
    values = Counter(names[place] for place in dropped)
    for place in dropped:
        root.remove(objects[place])
    words = [
        f'{counted(count, "object")} {"clamped" if key == "clipped" else f"dropped ({key})"}'
        for key, count in counts.items()
    ]
    return Mended(ET.tostring(root, encoding='utf-8'), '.xml', words, dict(values), dict(counts))


def _read(data: bytes) -> ET.Element:
    if b'<!DOCTYPE' in data or b'<!ENTITY' in data:
        raise NotMended('it declares a document type: no VOC annotation does, and such a file can exhaust the memory')
    try:
        root = ET.fromstring(data)
    except (ET.ParseError, ValueError, LookupError) as error:
        raise NotMended(f'unreadable: {type(error).__name__}: {error}') from error
    if root.tag != 'annotation':
        raise NotMended(f'no VOC annotation: its root is <{root.tag}>')
    return root


def _number(text: Optional[str]) -> float:
    """A size; infinite where the file does not say."""
    try:
        found = float(text or '')
    except ValueError:
        return _INF
    return found if found > 0 else _INF


def _corners(item: ET.Element) -> Optional[Corners]:
    values: List[Optional[str]] = [item.findtext(f'bndbox/{side}') for side in _SIDES]
    found = numbers(values)
    if found is None:
        return None
    left, top, right, bottom = found
    return left - 1, top - 1, right - 1, bottom - 1


def _clamp(item: ET.Element, width: float, height: float) -> int:
    """Clamps a box in place; returns how many were changed, 0 or 1."""
    corners = _corners(item)
    if corners is None or fault_of(corners, width, height):
        return 0
    inside = clamped(corners, width, height)
    if inside == corners:
        return 0
    for side, value in zip(_SIDES, inside):
        part = item.find(f'bndbox/{side}')
        assert part is not None
        part.text = f'{value + 1:g}'
    return 1
