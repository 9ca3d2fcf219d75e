"""A Labelme JSON file: its shapes and their faults. The embedded image is not decoded."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any, List, NamedTuple, Optional, Tuple

from mmguard.formats.coco.records import is_writable
from mmguard.formats.faults import Faults
from mmguard.formats.files import FILES
from mmguard.formats.table import NO_NUMBER
from mmguard.text import shorten

#: Maximum size of a file in bytes; one with an embedded image has tens of megabytes.
LARGEST = 512 << 20
Points = List[Tuple[float, float]]
NO_CORNERS = (float(NO_NUMBER),) * 4
#: Shape types with an area -> minimum and maximum number of points in this family of tools; maximum 0: unlimited.
AREAS = {'polygon': (3, 0), 'rectangle': (2, 4), 'circle': (2, 2), 'mask': (2, 2), 'rotation': (4, 4)}
#: Shape types without an area.
KINDS_WITHOUT_AREA = ('point', 'points', 'line', 'linestrip')
#: Names that Labelme's own converters do not treat as classes.
NAMES_OF_NO_CLASS = ('__ignore__', '_background_')
#: Reasons why a shape gives no object; keys of rule MG179.
FEW_POINTS_FAULT = 'a polygon has fewer than 3 points'
NO_AREA_FAULT = 'a point or a line encloses no area'
WRONG_POINTS_FAULT = 'a rectangle or circle is not of 2 points'
NO_MASK_FAULT = 'a mask is missing, or not as large as its corners say'
_PNG = b'\x89PNG\r\n\x1a\n'


class Shape(NamedTuple):
    """A shape drawn on an image: its label, its box and its fault."""

    place: int  #: Index in the list of shapes.
    label: str  #: Name of its class.
    kind: str  #: ``'polygon'``, ``'circle'``, ...
    #: Corners of the bounding box, in pixels; ``NO_NUMBER`` throughout if it has no area.
    corners: Tuple[float, ...]
    group: Any = None  #: Shapes of the same label and group are one object; ``None`` if it has no group.
    fault: str = ''  #: Reason why it gives no object; empty if it gives one.


class ShapeFile(NamedTuple):
    """Shapes drawn on an image."""

    name: str  #: Name of the file in messages.
    image: str  #: Path of the image as written in the file; empty if missing.
    size: Optional[Tuple[float, float]]  #: Height and width; ``None`` if the file does not give them.
    has_data: bool  #: True if the image is embedded.
    shapes: List[Shape]  #: Shapes that have a label and points.


def read_labelme(path: str, source: str, faults: Faults) -> Optional[ShapeFile]:
    """Read a file without raising; return ``None`` if there is nothing beyond ``faults``."""
    content = _read_json(path, source, faults)
    if content is None:
        return None
    (record,) = content
    if not isinstance(record, dict) or not isinstance(record.get('shapes'), list):
        if not is_of_others(record):
            faults.add('is not a file of Labelme: it has no list "shapes"', source)
        return None
    image, data = record.get('imagePath'), record.get('imageData')
    if not isinstance(image, str) or not image or '\0' in image or not is_writable(image):
        faults.add('imagePath does not name a file', f'{source}: {shorten(image)}')
        image = ''
    found = [parse_shape(one, place, source, faults) for place, one in enumerate(record['shapes'])]
    size = _read_size(record, source, faults)
    return ShapeFile(source, image, size, isinstance(data, str) and bool(data), [one for one in found if one])


def is_of_others(record: Any) -> bool:
    """Return True if a JSON is not meant to be a Labelme file: converter output, settings, a manifest."""
    return isinstance(record, dict) and bool(record) and not {'shapes', 'imagePath', 'imageData'} & set(record)


def _read_size(record: Any, source: str, faults: Faults) -> Optional[Tuple[float, float]]:
    """Return the height and width that a file gives; ``None`` if it does not, or with a fault recorded."""
    height, width = record.get('imageHeight'), record.get('imageWidth')
    if height is None and width is None:
        return None
    if all(type(side) is int and 1 <= side <= 1 << 24 for side in (height, width)):
        return float(height), float(width)
    faults.add('imageHeight or imageWidth is not a positive integer', f'{source}: {shorten(height)}, {shorten(width)}')
    return None


def parse_shape(record: Any, place: int, source: str, faults: Faults) -> Optional[Shape]:
    """Parse a record of ``shapes``; return ``None`` if it cannot be used."""
    where = f'{source}: shapes[{place}]'
    if not isinstance(record, dict):
        faults.add('a shape is not an object', f'{where} is {shorten(record)}')
        return None
    label, kind, group = (
        _read_label(record.get('label'), where, faults),
        record.get('shape_type'),
        record.get('group_id'),
    )
    kind = 'polygon' if kind is None else kind
    if label is None:
        return None
    if not isinstance(kind, str) or kind not in (*AREAS, *KINDS_WITHOUT_AREA):
        faults.add('a shape is of a kind that Labelme does not have', f'{where}: {shorten(kind)}')
        return None
    if group is not None and type(group) not in (int, str):
        faults.add('group_id is neither a number nor a string', f'{where}: {shorten(group)}')
        group = None
    points = _read_points(record.get('points'), where, faults)
    if points is None:
        return None
    fault = _find_fault(kind, points, record.get('mask'))
    return Shape(place, label, kind, NO_CORNERS if fault else _compute_corners(kind, points), group, fault)


def _find_fault(kind: str, points: Points, mask: Any) -> str:
    if kind in KINDS_WITHOUT_AREA:
        return NO_AREA_FAULT
    least, most = AREAS[kind]
    if kind == 'polygon':
        return FEW_POINTS_FAULT if len(points) < least else ''
    if not (least <= len(points) <= most) or (kind == 'rectangle' and len(points) == 3):
        return NO_MASK_FAULT if kind == 'mask' else WRONG_POINTS_FAULT
    if kind == 'mask':
        (left, top), (right, bottom) = points
        return '' if _mask_size(mask) == (int(bottom) - int(top) + 1, int(right) - int(left) + 1) else NO_MASK_FAULT
    return ''


def _mask_size(mask: Any) -> Optional[Tuple[int, int]]:
    """Return height and width of an embedded PNG from its first bytes; ``None`` if it is not a PNG."""
    try:
        head = base64.b64decode(mask[:32]) if isinstance(mask, str) else b''
    except ValueError:
        return None
    if not head.startswith(_PNG) or len(head) < 24:
        return None
    width, height = struct.unpack('>II', head[16:24])
    return height, width


def _compute_corners(kind: str, points: Points) -> Tuple[float, ...]:
    if kind == 'circle':
        (x, y), other = points
        radius = math.hypot(other[0] - x, other[1] - y)
        return x - radius, y - radius, x + radius, y + radius
    xs, ys = zip(*points)
    one = float(kind == 'mask')  # the corners of a mask are pixels that belong to it
    return min(xs), min(ys), max(xs) + one, max(ys) + one


def _read_json(path: str, source: str, faults: Faults) -> Optional[Tuple[Any]]:
    """Return the content of a JSON file as a 1-tuple; ``None``, with a fault recorded, if it cannot be read."""
    try:
        text = FILES.read(path, LARGEST)
    except (OSError, ValueError) as error:
        faults.add(f'cannot be read: {getattr(error, "strerror", None) or error}', source)
        return None
    if not text.strip():
        faults.add('the file is empty', source)
        return None
    try:
        return (json.loads(text.decode('utf-8-sig')),)  # given bytes, json accepts lone surrogates
    except RecursionError:
        faults.add('is nested too deeply', source)
    except ValueError as error:
        faults.add('is not JSON, or is damaged', f'{source}: {str(error)[:120]}')
    return None


def _read_label(value: Any, where: str, faults: Faults) -> Optional[str]:
    """Return the label of a shape; ``None``, with a fault recorded, if it has none."""
    if value is None or (isinstance(value, str) and not value.strip()):
        faults.add('a shape has no label', where)
        return None
    if not isinstance(value, str) or not is_writable(value):
        faults.add('the label of a shape is not a string', f'{where}: {shorten(value)}')
        return None
    return value


def _read_points(value: Any, where: str, faults: Faults) -> Optional[Points]:
    """Return pairs of finite numbers; ``None``, with a fault recorded, for anything else."""
    pairs = value if isinstance(value, list) else [None]
    points = [point for point in map(_read_point, pairs) if point is not None]
    if len(points) == len(pairs):
        return points
    faults.add('points of a shape are not pairs of finite numbers', f'{where}: {shorten(value)}')
    return None


def _read_point(pair: Any) -> Optional[Tuple[float, float]]:
    if not isinstance(pair, list) or len(pair) != 2 or any(type(one) not in (int, float) for one in pair):
        return None
    try:
        x, y = map(float, pair)
    except OverflowError:
        return None
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None
