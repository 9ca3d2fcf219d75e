"""Files of shapes, one for each image: what a shape is, whatever the tool that drew it."""

from __future__ import annotations

import json
import math
from typing import Any, List, NamedTuple, Optional, Tuple

from mmguard.tools.scan.annotations.coco_records import NO_NUMBER, is_writable
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.storage.files import open_regular

#: With its image in it, a file is some tens of megabytes.
LARGEST = 512 << 20
#: Why a shape gives no object -> as rule MG179 knows them.
SHORT = 'a polygon has fewer than 3 points'
NO_AREA = 'a point or a line encloses no area'
Points = List[Tuple[float, float]]
NO_CORNERS = (float(NO_NUMBER),) * 4


class Shape(NamedTuple):
    """A shape.

    Attributes:
        place (int): Its place in the file: in a list, or its line.
        label (str): Its name.
        kind (str): ``'polygon'``, ``'circle'``, ...
        corners (tuple): Those of the box around it, in pixels; ``NO_NUMBER`` throughout where it encloses nothing.
        group (object): Shapes of one label and group are one object; ``None``: of no group.
        fault (str): Why it gives no object; empty: it does. An oriented box with its corners in another order is one
            all the same.
        ignored (bool): Whether its object is not trained on.
        again (bool): Whether it stands in the file before.
    """

    place: int
    label: str
    kind: str
    corners: Tuple[float, ...]
    group: Any = None
    fault: str = ''
    ignored: bool = False
    again: bool = False


class ShapeFile(NamedTuple):
    """What is drawn on an image.

    Attributes:
        name (str): How messages name the file.
        image (str): The image, as it is written; empty where none is named.
        size (tuple, optional): Height and width; ``None`` where the file does not say.
        data (str): The embedded image, as it is written; empty where there is none.
        shapes (list[Shape]): Those that have a label and points.
    """

    name: str
    image: str
    size: Optional[Tuple[float, float]]
    data: str
    shapes: List[Shape]


def read_bytes(path: str, source: str, faults: Faults, may_be_empty: bool = False) -> Optional[bytes]:
    """A whole file; ``None`` where it cannot be read, or is empty, which is written down."""
    try:
        with open_regular(path) as file:
            text = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        faults.add(f'cannot be read: {getattr(error, "strerror", None) or error}', source)
        return None
    if len(text) > LARGEST:
        faults.add(f'is larger than {LARGEST >> 20} MiB', source)
        return None
    if not may_be_empty and not text.strip():
        faults.add('the file is empty', source)
        return None
    return text


def read_json(path: str, source: str, faults: Faults) -> Optional[Tuple[Any]]:
    """What a JSON holds, as the one element of a tuple; ``None`` where that is nothing, which is written down.

    Args:
        path (str): The file.
        source (str): How messages name it.
        faults (Faults): Takes what is wrong.
    """
    text = read_bytes(path, source, faults)
    if text is None:
        return None
    try:
        return (json.loads(text.decode('utf-8-sig')),)  # of bytes json takes halves of characters
    except RecursionError:
        faults.add('is nested too deeply', source)
    except ValueError as error:
        faults.add('is no JSON, or damaged', f'{source}: {str(error)[:120]}')
    return None


def label_of(value: Any, where: str, faults: Faults) -> Optional[str]:
    """The name of a shape; ``None`` where it has none."""
    if value is None or (isinstance(value, str) and not value.strip()):
        faults.add('a shape has no label', where)
        return None
    if not isinstance(value, str) or not is_writable(value):
        faults.add('the label of a shape is no text', f'{where}: {short(value)}')
        return None
    return value


def points_of(value: Any, where: str, faults: Faults) -> Optional[Points]:
    """Pairs of finite numbers; ``None`` where it is anything else."""
    pairs = value if isinstance(value, list) else [None]
    points = [point for point in map(_point_of, pairs) if point is not None]
    if len(points) == len(pairs):
        return points
    faults.add('points of a shape are no pairs of finite numbers', f'{where}: {short(value)}')
    return None


def _point_of(pair: Any) -> Optional[Tuple[float, float]]:
    if not isinstance(pair, list) or len(pair) != 2 or any(type(one) not in (int, float) for one in pair):
        return None
    try:
        x, y = map(float, pair)
    except OverflowError:
        return None
    return (x, y) if math.isfinite(x) and math.isfinite(y) else None


def size_of(height: Any, width: Any, keys: str, source: str, faults: Faults) -> Optional[Tuple[float, float]]:
    """Height and width as a file says them."""
    if all(type(side) is int and 1 <= side <= 1 << 24 for side in (height, width)):
        return float(height), float(width)
    faults.add(f'{keys} is no whole number above 0', f'{source}: {short(height)}, {short(width)}')
    return None


def around(points: Points) -> Tuple[float, ...]:
    """The corners of the box around points."""
    xs, ys = zip(*points)
    return min(xs), min(ys), max(xs), max(ys)
