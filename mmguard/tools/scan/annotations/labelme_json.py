"""One JSON of Labelme: what its shapes are, and what is wrong with them. The embedded image is left alone."""

from __future__ import annotations

import base64
import io
import math
import struct
from typing import Any, Optional, Tuple

from mmguard.tools.scan.annotations.coco_records import is_writable
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.shape_records import (
    NO_AREA,
    NO_CORNERS,
    SHORT,
    Points,
    Shape,
    ShapeFile,
    around,
    label_of,
    points_of,
    read_json,
    size_of,
)

#: Kinds that enclose an area, and how many points the tools of this family take; no more than 0: any number.
AREAS = {'polygon': (3, 0), 'rectangle': (2, 4), 'circle': (2, 2), 'mask': (2, 2), 'rotation': (4, 4)}
#: Kinds that do not.
THIN = ('point', 'points', 'line', 'linestrip')
#: Why a shape gives no object, beside what all formats know -> as rule MG179 knows them.
OTHER_POINTS = 'a rectangle or circle is not of 2 points'
NO_MASK = 'a mask is missing, or not as large as its corners say'
_PNG = b'\x89PNG\r\n\x1a\n'


def read_labelme(path: str, source: str, faults: Faults) -> Optional[ShapeFile]:
    """Reads a file; never raises.

    Args:
        path (str): The file.
        source (str): How messages name it.
        faults (Faults): Takes what is wrong; ``None`` is returned where that is all of it.
    """
    content = read_json(path, source, faults)
    if content is None:
        return None
    (record,) = content
    if not isinstance(record, dict) or not isinstance(record.get('shapes'), list):
        if not is_of_others(record):
            faults.add('is no file of Labelme: it has no list "shapes"', source)
        return None
    image, data = record.get('imagePath'), record.get('imageData')
    if not isinstance(image, str) or not image or '\0' in image or not is_writable(image):
        faults.add('imagePath names no file', f'{source}: {short(image)}')
        image = ''
    found = [shape_of(one, place, source, faults) for place, one in enumerate(record['shapes'])]
    size = _size(record, source, faults)
    return ShapeFile(source, image, size, data if isinstance(data, str) else '', [one for one in found if one])


def is_of_others(record: Any) -> bool:
    """Whether a JSON is no file of Labelme, nor meant to be: what a converter wrote, settings, a manifest."""
    return isinstance(record, dict) and bool(record) and not {'shapes', 'imagePath', 'imageData'} & set(record)


def size_of_data(data: str) -> Tuple[float, float]:
    """Height and width of an embedded image.

    Raises:
        Exception: It is damaged.
    """
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(data))) as opened:
        return float(opened.height), float(opened.width)


def _size(record: Any, source: str, faults: Faults) -> Optional[Tuple[float, float]]:
    height, width = record.get('imageHeight'), record.get('imageWidth')
    if height is None and width is None:
        return None
    return size_of(height, width, 'imageHeight or imageWidth', source, faults)


def shape_of(record: Any, place: int, source: str, faults: Faults) -> Optional[Shape]:
    """What a record of ``shapes`` stands for.

    Args:
        record: Whatever the JSON holds there.
        place (int): Its place in the list.
        source (str): How messages name the file.
        faults (Faults): Takes what is wrong; ``None`` is returned where nothing can be made of it.
    """
    where = f'{source}: shapes[{place}]'
    if not isinstance(record, dict):
        faults.add('a shape is no object', f'{where} is {short(record)}')
        return None
    label, kind, group = label_of(record.get('label'), where, faults), record.get('shape_type'), record.get('group_id')
    kind = 'polygon' if kind is None else kind
    if label is None:
        return None
    if not isinstance(kind, str) or kind not in (*AREAS, *THIN):
        faults.add('a shape is of a kind that Labelme does not have', f'{where}: {short(kind)}')
        return None
    if group is not None and type(group) not in (int, str):
        faults.add('group_id is neither a number nor a text', f'{where}: {short(group)}')
        group = None
    points = points_of(record.get('points'), where, faults)
    if points is None:
        return None
    fault = _fault_of(kind, points, record.get('mask'))
    return Shape(place, label, kind, NO_CORNERS if fault else _corners(kind, points), group, fault)


def _fault_of(kind: str, points: Points, mask: Any) -> str:
    if kind in THIN:
        return NO_AREA
    least, most = AREAS[kind]
    if kind == 'polygon':
        return SHORT if len(points) < least else ''
    if not (least <= len(points) <= most) or (kind == 'rectangle' and len(points) == 3):
        return NO_MASK if kind == 'mask' else OTHER_POINTS
    if kind == 'mask':
        (left, top), (right, bottom) = points
        return '' if _mask_size(mask) == (int(bottom) - int(top) + 1, int(right) - int(left) + 1) else NO_MASK
    return ''


def _mask_size(mask: Any) -> Optional[Tuple[int, int]]:
    """Height and width of an embedded PNG, from its first bytes."""
    try:
        head = base64.b64decode(mask[:32]) if isinstance(mask, str) else b''
    except ValueError:
        return None
    if not head.startswith(_PNG) or len(head) < 24:
        return None
    width, height = struct.unpack('>II', head[16:24])
    return height, width


def _corners(kind: str, points: Points) -> Tuple[float, ...]:
    if kind == 'circle':
        (x, y), other = points
        radius = math.hypot(other[0] - x, other[1] - y)
        return x - radius, y - radius, x + radius, y + radius
    left, top, right, bottom = around(points)
    one = float(kind == 'mask')  # its corners are pixels, and both belong to it
    return left, top, right + one, bottom + one
