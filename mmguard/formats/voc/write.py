"""Correction of VOC XML: objects with an unknown name or an invalid box."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from typing import Callable, Dict, Iterable, Optional, Tuple

import numpy as np

from mmguard.formats.correction import Corrected, NotCorrected, number, parse_corners, shorten_number
from mmguard.formats.options import FixOptions
from mmguard.formats.voc.records import XmlFault, parse_xml
from mmguard.labels.instances import InstanceRule, find_corner_faults
from mmguard.text import quantity

_SIDES = ('xmin', 'ymin', 'xmax', 'ymax')
_INF = float('inf')
_WORDS = {'clipped': 'clamped', 'renamed': 'renamed', 'boxes_converted': 'converted', 'no_crowd': 'no longer difficult'}

#: Format of a box -> its corners as VOC counts them, in an image of some width and height.
BOX_WRITERS: Dict[str, Callable[..., Tuple[float, ...]]] = {
    'corners': lambda a, b, c, d, *_: (a, b, c, d),
    'fractions': lambda a, b, c, d, width, height: (a * width + 1, b * height + 1, c * width, d * height),
}


def correct_voc(data: bytes, options: FixOptions) -> Corrected:
    """Clamp boxes into the image, then leave out objects that training cannot use.

    VOC counts pixels from 1; a box is judged as mmdet loads it, minus one.
    """
    root = _read(data)
    counts: Counter = Counter()
    width, height = (_read_side(root.findtext(f'size/{side}')) for side in ('width', 'height'))
    objects = root.findall('object')
    for item in objects:
        _change(item, width, height, options, counts)
        counts['clipped'] += _clamp(item, width, height)
    names = [(item.findtext('name') or '').strip() for item in objects]
    known = sorted(set(names) - {''}) if options.classes is None else list(options.classes)
    label_of = {name: label for label, name in reversed(list(enumerate(known)))}
    labels = np.array([label_of.get(name, -1) for name in names], dtype=np.int64)
    corners = np.array([_read_corners(item) for item in objects], float).reshape(-1, 4)
    faults = find_corner_faults(corners, (height, width))
    corrected = InstanceRule(max(len(known), 1), 'drop').sanitize(labels, None, faults)
    counts.update(corrected.tally.reasons)
    counts = +counts
    if not counts:
        return Corrected(data, '.xml', [], {}, {})
    dropped = [] if corrected.dropped is None else np.flatnonzero(corrected.dropped).tolist()
    values = Counter(names[place] for place in dropped)
    for place in dropped:
        root.remove(objects[place])
    words = [f'{quantity(count, "object")} {_WORDS.get(key, f"dropped ({key})")}' for key, count in counts.items()]
    try:
        text = ET.tostring(root, encoding='utf-8')
    except RecursionError as error:
        raise NotCorrected('nested too deeply for an annotation') from error
    return Corrected(text, '.xml', words, dict(values), dict(counts))


def _change(item: ET.Element, width: float, height: float, options: FixOptions, counts: Counter) -> None:
    """Change an object in place according to the options."""
    name = item.find('name')
    if name is not None and options.rename.get(name.text or '', name.text) != name.text:
        name.text = options.rename[name.text or '']
        counts['renamed'] += 1
    difficult = item.find('difficult')
    if options.no_crowds and difficult is not None and (difficult.text or '').strip() not in ('', '0'):
        difficult.text = '0'
        counts['no_crowd'] += 1
    if options.boxes in ('', 'corners'):
        return
    if options.boxes not in BOX_WRITERS:
        raise NotCorrected(f'--boxes for VOC XML must be one of {", ".join(BOX_WRITERS)}, got {options.boxes}')
    box = parse_corners([item.findtext(f'bndbox/{side}') for side in _SIDES])
    if box is not None and (options.boxes != 'fractions' or max(width, height) < _INF):
        _write_box(item, map(round, BOX_WRITERS[options.boxes](*box, width, height)))
        counts['boxes_converted'] += 1


def _write_box(item: ET.Element, corners: Iterable[float]) -> None:
    for side, value in zip(_SIDES, corners):
        part = item.find(f'bndbox/{side}')
        assert part is not None
        part.text = str(shorten_number(float(value)))


def _read(data: bytes) -> ET.Element:
    if b'<!DOCTYPE' in data or b'<!ENTITY' in data:
        raise NotCorrected(
            'it declares a document type: no VOC annotation does, and such a file can exhaust the memory'
        )
    try:
        root = parse_xml(data)
    except XmlFault as error:
        raise NotCorrected(f'unreadable: {error}') from error
    if root.tag != 'annotation':
        raise NotCorrected(f'not a VOC annotation: its root is <{root.tag}>')
    return root


def _read_side(text: Optional[str]) -> float:
    """Return a side of the image; infinite if the file does not give it."""
    found = number(text)
    return _INF if found is None or found <= 0 else found


def _read_corners(item: ET.Element) -> Tuple[float, ...]:
    """Return a box as loaded by mmdet: whole numbers, one less than in the file; NaN if one is missing."""
    found = parse_corners([item.findtext(f'bndbox/{side}') for side in _SIDES])
    return (np.nan,) * 4 if found is None else tuple(float(int(side) - 1) for side in found)


def _clamp(item: ET.Element, width: float, height: float) -> int:
    """Clamp a box in place; return how many were changed, 0 or 1."""
    corners = np.array([_read_corners(item)])
    inside = corners.clip(0, (width, height) * 2)
    if find_corner_faults(corners, (height, width))[0] or (inside == corners).all():
        return 0
    _write_box(item, (inside[0] + 1).tolist())
    return 1
