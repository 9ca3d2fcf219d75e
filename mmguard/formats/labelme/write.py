"""Correction of Labelme JSON: names, shapes that give no object, and points outside the image."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

from mmguard.formats.correction import Corrected, NotCorrected, clamp, find_box_fault, shorten_number
from mmguard.formats.faults import Faults
from mmguard.formats.labelme.records import NAMES_OF_NO_CLASS, NO_AREA_FAULT, Shape, parse_shape
from mmguard.formats.options import FixOptions
from mmguard.text import quantity

_INF = float('inf')
#: Kinds of shapes whose points may be moved one by one.
_BY_POINT = ('polygon', 'rectangle', 'rotation')


def correct_labelme(data: bytes, options: FixOptions) -> Corrected:
    """Correct a Labelme file; a valid one is copied unchanged."""
    if options.boxes not in ('', 'corners'):
        raise NotCorrected('--boxes does not apply to Labelme, which has points in pixels')
    try:
        record = json.loads(data.decode('utf-8-sig'))
    except (ValueError, RecursionError) as error:
        raise NotCorrected(f'unreadable: {type(error).__name__}: {str(error)[:120]}') from error
    if not isinstance(record, dict) or not isinstance(record.get('shapes'), list):
        raise NotCorrected('not a file of Labelme: it has no list "shapes"')
    counts: Counter = Counter()
    size = _get_size(record)
    kept: List[Any] = []
    values: Counter = Counter()
    for place, shape in enumerate(record['shapes']):
        why = _correct_shape(shape, place, size, options, counts)
        if why:
            counts[f'dropped ({why})'] += 1
            values[str(shape.get('label') if isinstance(shape, dict) else shape)[:60]] += 1
        else:
            kept.append(shape)
    counts = +counts
    if not counts:
        return Corrected(data, '.json', [], {}, {})
    record['shapes'] = kept
    words = [f'{quantity(number, "shape")} {what}' for what, number in counts.items()]
    text = json.dumps(record, ensure_ascii=False, indent=2)
    # JSON can hold a lone surrogate only as an escape.
    return Corrected(text.encode('utf-8', 'backslashreplace'), '.json', words, dict(values), dict(counts))


def _get_size(record: Dict[str, Any]) -> Tuple[float, float]:
    """Return width and height; infinite if the file does not give them."""
    sides = [record.get('imageWidth'), record.get('imageHeight')]
    width, height = (float(side) if type(side) is int and side > 0 else _INF for side in sides)
    return width, height


def _correct_shape(
    record: Any, place: int, size: Tuple[float, float], options: FixOptions, counts: Counter
) -> Optional[str]:
    """Correct a shape in place; return the reason if it must be dropped, else ``None``."""
    shape = parse_shape(record, place, '', Faults())
    if shape is None:
        return 'cannot be read'
    name = options.rename.get(record['label'], shape.label)
    if name != shape.label:
        record['label'] = name
        counts['renamed'] += 1
    if options.classes is not None and name not in (*options.classes, *NAMES_OF_NO_CLASS):
        return 'label'
    if shape.fault:
        return None if shape.fault == NO_AREA_FAULT else 'no area'
    return _clamp_shape(record, shape, size, counts)


def _clamp_shape(record: Any, shape: Shape, size: Tuple[float, float], counts: Counter) -> Optional[str]:
    width, height = size
    left, top, right, bottom = shape.corners
    corners = (left, top, right, bottom)
    if find_box_fault(corners, width, height):
        return 'box'
    if clamp(corners, width, height) == corners or shape.kind not in _BY_POINT:
        return None
    record['points'] = [
        [shorten_number(float(min(max(x, 0), width))), shorten_number(float(min(max(y, 0), height)))]
        for x, y in record['points']
    ]
    counts['clamped'] += 1
    return None
