"""Corrects JSON of Labelme and of Cityscapes: names, shapes that give no object, and points outside of the image."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.text.words import counted
from mmguard.tools.fix.boxes import clamped, fault_of, shortest
from mmguard.tools.fix.label_files import Corrected, LabelFiles, names_below
from mmguard.tools.fix.options import FixOptions, NotCorrected
from mmguard.tools.scan.annotations.cityscapes import OTHERS, polygon_of
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.labelme import LISTS, NO_CLASS, is_other_file
from mmguard.tools.scan.annotations.labelme_json import shape_of
from mmguard.tools.scan.annotations.shape_records import NO_AREA, Shape
from mmguard.tools.scan.annotations.shape_target import folder_of
from mmguard.tools.scan.sources.folder import POLYGONS
from mmguard.tools.scan.sources.folders import is_image_name

_INF = float('inf')
#: Kinds whose points may be moved one by one.
_BY_POINT = ('polygon', 'rectangle', 'rotation')


class _Format(NamedTuple):
    """How a format writes shapes: the keys of their list, of their points, and of the size of the image."""

    name: str
    shapes: str
    points: str
    width: str
    height: str
    shape_of: Callable[[Any, int, str, Faults], Optional[Shape]]
    no_class: Sequence[str]


_LABELME = _Format('Labelme', 'shapes', 'points', 'imageWidth', 'imageHeight', shape_of, NO_CLASS)
_CITYSCAPES = _Format('Cityscapes', 'objects', 'polygon', 'imgWidth', 'imgHeight', polygon_of, OTHERS)


def files_of_labelme(target: str, options: FixOptions) -> LabelFiles:
    root = folder_of(target)
    below = sorted(names_below(target)) if os.path.isdir(target) else [os.path.basename(target)]
    names = [name for name in below if _belongs(name) or _is_own(os.path.join(root, name))]
    return LabelFiles(
        [(os.path.join(root, name), name) for name in names],
        lambda data, _: _correct(data, options, _LABELME),
        frozenset(name for name in names if not name.lower().endswith('.json')),
    )


def files_of_cityscapes(target: str, options: FixOptions) -> LabelFiles:
    """Without label maps that were drawn of the originals."""
    root = folder_of(target)
    below = sorted(name for name in names_below(root) if name.endswith(POLYGONS)) if os.path.isdir(target) else None
    names = [os.path.basename(target)] if below is None else below
    return LabelFiles(
        [(os.path.join(root, name), name) for name in names],
        lambda data, _: _correct(data, options, _CITYSCAPES),
    )


def _is_own(path: str) -> bool:
    return path.lower().endswith('.json') and not is_other_file(path)


def _belongs(name: str) -> bool:
    return is_image_name(os.path.basename(name)) or os.path.basename(name) in LISTS


def _correct(data: bytes, options: FixOptions, written: _Format) -> Corrected:
    """Corrects a file; one that is right stays as it is written.

    Args:
        data (bytes): The file.
        options (FixOptions): ``classes`` are the names that are valid; ``None``: any.
        written (_Format): How it is written.

    Raises:
        NotCorrected: It is damaged.
    """
    if options.boxes not in ('', 'either', 'corners') or options.scale is not None or options.sizes == 'scaled':
        raise NotCorrected(f'--boxes and --scale are of other formats: {written.name} has points in pixels')
    try:
        record = json.loads(data.decode('utf-8-sig'))
    except (ValueError, RecursionError) as error:
        raise NotCorrected(f'unreadable: {type(error).__name__}: {str(error)[:120]}') from error
    if not isinstance(record, dict) or not isinstance(record.get(written.shapes), list):
        raise NotCorrected(f'no file of {written.name}: it has no list "{written.shapes}"')
    counts: Counter = Counter()
    if options.sizes and record.get(written.height) != record.get(written.width):
        record[written.height], record[written.width] = record.get(written.width), record.get(written.height)
        counts['width and height swapped'] += 1
    size = _size(record, written)
    kept: List[Any] = []
    values: Counter = Counter()
    for place, shape in enumerate(record[written.shapes]):
        why = _corrected(shape, place, size, options, counts, written)
        if why:
            counts[f'dropped ({why})'] += 1
            values[str(shape.get('label') if isinstance(shape, dict) else shape)[:60]] += 1
        else:
            kept.append(shape)
    counts = +counts
    if not counts:
        return Corrected(data, '.json', [], {}, {})
    record[written.shapes] = kept
    words = [
        what if what.startswith('width') else f'{counted(number, "shape")} {what}' for what, number in counts.items()
    ]
    text = json.dumps(record, ensure_ascii=False, indent=2)
    # Half a character can stand in JSON as an escape alone.
    return Corrected(text.encode('utf-8', 'backslashreplace'), '.json', words, dict(values), dict(counts))


def _size(record: Dict[str, Any], written: _Format) -> Tuple[float, float]:
    """Width and height; infinite where the file does not say."""
    sides = [record.get(written.width), record.get(written.height)]
    width, height = (float(side) if type(side) is int and side > 0 else _INF for side in sides)
    return width, height


def _corrected(
    record: Any, place: int, size: Tuple[float, float], options: FixOptions, counts: Counter, written: _Format
) -> Optional[str]:
    """Changes a shape, in place; why it cannot stay."""
    if written is _CITYSCAPES and isinstance(record, dict) and record.get('deleted'):
        return None
    shape = written.shape_of(record, place, '', Faults())
    if shape is None:
        return 'cannot be read'
    name = options.rename.get(record['label'], shape.label)
    if name != shape.label:
        record['label'] = name
        counts['renamed'] += 1
    if options.classes is not None and name not in (*options.classes, *written.no_class):
        return 'label'
    if shape.fault:
        return None if shape.fault == NO_AREA else 'no area'
    return _clamped(record, shape, size, counts, written.points)


def _clamped(record: Any, shape: Shape, size: Tuple[float, float], counts: Counter, key: str) -> Optional[str]:
    width, height = size
    left, top, right, bottom = shape.corners
    corners = (left, top, right, bottom)
    if fault_of(corners, width, height):
        return 'box'
    if clamped(corners, width, height) == corners or shape.kind not in _BY_POINT:
        return None
    record[key] = [
        [shortest(float(min(max(x, 0), width))), shortest(float(min(max(y, 0), height)))] for x, y in record[key]
    ]
    counts['clamped'] += 1
    return None
