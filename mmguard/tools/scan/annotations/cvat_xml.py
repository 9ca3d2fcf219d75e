"""One XML of "CVAT for images 1.1", or "for video": its images, what is drawn on them, and what is wrong with it."""

from __future__ import annotations

import math
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from xml.parsers import expat

from mmguard.tools.scan.annotations.coco_records import is_writable
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.labelme_json import NO_MASK
from mmguard.tools.scan.annotations.shape_records import (
    NO_AREA,
    NO_CORNERS,
    SHORT,
    Points,
    Shape,
    around,
    label_of,
    read_bytes,
)

#: Kinds that enclose nothing.
THIN = ('polyline', 'points')
#: What is no shape of its own: labels of whole images, keypoints under a name, boxes in space.
NO_SHAPES = ('tag', 'skeleton', 'cuboid')
_BOX = ('xtl', 'ytl', 'xbr', 'ybr')
_ELLIPSE = ('cx', 'cy', 'rx', 'ry')
_MASK = ('left', 'top', 'width', 'height')
_LARGEST_SIDE = 1 << 24
#: No declared label stands deeper: what is nested further is not looked through, which would take for ever.
_DEEPEST = 16


class CvatImage(NamedTuple):
    """An image.

    Attributes:
        name (str): As it is written; empty where it has none.
        subset (str): Its subset; empty: none.
        size (tuple, optional): Height and width; ``None`` where the file does not say.
        shapes (list[Shape]): What is drawn on it; ``place`` is the line.
        is_frame (bool): Whether it is one of a video, of which the name has no ending.
    """

    name: str
    subset: str
    size: Optional[Tuple[float, float]]
    shapes: List[Shape]
    is_frame: bool = False


class CvatFile(NamedTuple):
    """What a file holds.

    Attributes:
        name (str): How messages name it.
        labels (list[str]): Those that it declares.
        images (list[CvatImage]): Its images.
        passed_over (int): Tags, skeletons and cuboids.
    """

    name: str
    labels: List[str]
    images: List[CvatImage]
    passed_over: int


class _EntityError(Exception):
    pass


def read_cvat(path: str, source: str, faults: Faults) -> Optional[CvatFile]:
    """Reads a file; never raises. Entities are not followed: a file that declares one is not read at all.

    Args:
        path (str): The file.
        source (str): How messages name it.
        faults (Faults): Takes what is wrong; ``None`` is returned where that is all of it.
    """
    text = read_bytes(path, source, faults)
    if text is None:
        return None
    reader = _Reader(source, faults)
    try:
        reader.parse(text)
    except expat.ExpatError as error:
        faults.add('is no XML, or damaged', f'{source}: {error}')
        return None
    except _EntityError:
        faults.add('declares an XML entity: not read, it may be hostile', source)
        return None
    except (ValueError, LookupError) as error:  # LookupError: an encoding that Python does not know
        faults.add(f'cannot be read: {error}', source)
        return None
    if reader.root != 'annotations':
        faults.add('is no file of CVAT: its root is not <annotations>', f'{source}: {short(reader.root)}')
        return None
    return CvatFile(source, reader.labels, [*reader.images, *reader.frames()], reader.passed_over)


class _Reader:
    """Collects images, shapes and declared labels."""

    def __init__(self, source: str, faults: Faults) -> None:
        self.root = ''
        self.labels: List[str] = []
        self.images: List[CvatImage] = []
        self.passed_over = 0
        self._source, self._faults = source, faults
        self._path: List[str] = []
        self._text = ''
        self._label = ''
        self._is_part = False
        self._track: Dict[str, str] = {}
        self._sides: Dict[str, List[Optional[int]]] = {'height': [], 'width': []}
        self._frames: Dict[Tuple[str, int], List[Shape]] = {}
        self._parser = expat.ParserCreate()

    def parse(self, text: bytes) -> None:
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._add
        self._parser.EntityDeclHandler = self._entity
        self._parser.Parse(text, True)

    def _entity(self, *_: object) -> None:
        raise _EntityError

    def _start(self, tag: str, attributes: Dict[str, str]) -> None:
        self.root = self.root or tag
        self._path.append(tag)
        self._text = ''
        line = self._parser.CurrentLineNumber
        if len(self._path) == 2:
            self._track = attributes
            if tag == 'image':
                self._start_image(attributes, f'{self._source}: line {line}')
        elif self._path[0] == 'annotations' and self._path[1:2] in (['image'], ['track']) and len(self._path) == 3:
            if tag in NO_SHAPES:
                self.passed_over += 1
                return
            if self._path[1] == 'track':
                self._add_of_track(tag, attributes, line)
                return
            shape = shape_of_element(tag, attributes, line, f'{self._source}: line {line}', self._faults)
            if shape is not None:
                self.images[-1].shapes.append(shape)

    def _add_of_track(self, tag: str, attributes: Dict[str, str], line: int) -> None:
        """Where an object is in one frame of a video."""
        where = f'{self._source}: line {line}'
        frame = whole(attributes.get('frame'), 0)
        if frame is None:
            self._faults.add('a shape of a track has no frame', where)
        elif not is_outside(attributes):
            shape = shape_of_element(tag, of_track(self._track, attributes), line, where, self._faults)
            shapes = self._frames.setdefault((self._track.get('task_id', ''), frame), [])
            shapes += [] if shape is None else [shape]

    def frames(self) -> List[CvatImage]:
        """The frames in which a track is, named as CVAT names them."""
        heights, widths = (set(self._sides[side]) for side in ('height', 'width'))
        size = None
        if len(heights) == len(widths) == 1:
            height, width = heights.pop(), widths.pop()
            size = (float(height), float(width)) if height is not None and width is not None else None
        return [CvatImage(f'frame_{n:06d}', '', size, shapes, True) for (_, n), shapes in sorted(self._frames.items())]

    def _start_image(self, attributes: Dict[str, str], where: str) -> None:
        name = attributes.get('name', '')
        if not name.strip() or not is_writable(name):
            self._faults.add('an image has no name', where)
            name = ''
        sides = [whole(attributes.get(side)) for side in ('height', 'width')]
        size = None
        if sides[0] is None or sides[1] is None:
            said = f'{short(attributes.get("height"))}, {short(attributes.get("width"))}'
            self._faults.add('height or width of an image is no whole number above 0', f'{where}: {said}')
        else:
            size = float(sides[0]), float(sides[1])
        self.images.append(CvatImage(name, attributes.get('subset', ''), size, []))

    def _add(self, text: str) -> None:
        if self._path[1:2] == ['meta']:
            self._text += text

    def _end(self, tag: str) -> None:
        path = self._path
        if path[1:2] == ['meta'] and path[-2:-1] == ['original_size'] and tag in self._sides:
            self._sides[tag].append(whole(self._text.strip()))
        if len(path) < _DEEPEST and path[1:2] == ['meta'] and 'labels' in path:
            depth = path.index('labels') + 1
            if path[depth:] == ['label', 'name']:
                self._label = self._text.strip()
            elif path[depth:] == ['label', 'parent']:
                self._is_part = bool(self._text.strip())
            elif path[depth:] == ['label']:
                if self._label and not self._is_part and self._label not in self.labels:
                    self.labels.append(self._label)
                self._label, self._is_part = '', False
        self._text = ''
        path.pop()


def is_outside(attributes: Mapping[str, str]) -> bool:
    """Whether an object of a video is not to be seen in a frame, though its track goes on."""
    return attributes.get('outside') == '1'


def of_track(track: Mapping[str, str], attributes: Mapping[str, str]) -> Dict[str, str]:
    """The attributes of a shape of a track, with the label, which the track has."""
    return {**attributes, 'label': track.get('label', '')}


def shape_of_element(tag: str, attributes: Mapping[str, str], line: int, where: str, faults: Faults) -> Optional[Shape]:
    """What an element of an image stands for.

    Args:
        tag (str): Its kind.
        attributes (dict[str, str]): As they are written.
        line (int): Where it stands.
        where (str): How messages name it.
        faults (Faults): Takes what is wrong; ``None`` is returned where nothing can be made of it.
    """
    maker = _MAKERS.get(tag)
    if maker is None:
        faults.add('an element of an image is no shape of CVAT', f'{where}: {short(tag)}')
        return None
    label = label_of(attributes.get('label'), where, faults)
    if label is None:
        return None
    made = maker(attributes)
    if made is None:
        faults.add('numbers of a shape are missing, or no finite numbers', where)
        return None
    corners, fault = made
    return Shape(line, label, tag, NO_CORNERS if fault else corners, None, fault)


_Made = Optional[Tuple[Tuple[float, ...], str]]


def _box(attributes: Mapping[str, str]) -> _Made:
    found = numbers(attributes, _BOX)
    if found is None:
        return None
    left, top, right, bottom = found
    turn = numbers({'rotation': '0', **attributes}, ('rotation',))
    if turn is None:
        return None
    if not turn[0]:
        return (left, top, right, bottom), ''
    x, y, angle = (left + right) / 2, (top + bottom) / 2, math.radians(turn[0])
    wide = abs((right - left) * math.cos(angle)) + abs((bottom - top) * math.sin(angle))
    high = abs((right - left) * math.sin(angle)) + abs((bottom - top) * math.cos(angle))
    return (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2), ''


def _polygon(attributes: Mapping[str, str]) -> _Made:
    points = points_of_text(attributes.get('points'))
    if points is None:
        return None
    return (around(points), '') if len(points) > 2 else (NO_CORNERS, SHORT)


def _thin(attributes: Mapping[str, str]) -> _Made:
    return None if points_of_text(attributes.get('points')) is None else (NO_CORNERS, NO_AREA)


def _ellipse(attributes: Mapping[str, str]) -> _Made:
    found = numbers(attributes, _ELLIPSE)
    if found is None:
        return None
    x, y, wide, high = found
    return (x - wide, y - high, x + wide, y + high), ''


def _mask(attributes: Mapping[str, str]) -> _Made:
    found = numbers(attributes, _MASK)
    if found is None:
        return None
    left, top, width, height = found
    runs = [whole(run.strip(), 0) for run in attributes.get('rle', '').split(',')]
    total = sum(run for run in runs if run is not None)
    fits = None not in runs and total == width * height
    return (left, top, left + width, top + height), '' if fits else NO_MASK


_MAKERS: Dict[str, Callable[[Mapping[str, str]], _Made]] = {
    'box': _box,
    'polygon': _polygon,
    'ellipse': _ellipse,
    'mask': _mask,
    **dict.fromkeys(THIN, _thin),
}


def numbers(attributes: Mapping[str, str], names: Sequence[str]) -> Optional[List[float]]:
    """Finite numbers; ``None`` where one is none."""
    try:
        found = [float(attributes[name]) for name in names]
    except (KeyError, ValueError):
        return None
    return found if all(map(math.isfinite, found)) else None


def whole(text: Optional[str], least: int = 1) -> Optional[int]:
    """A whole number, no larger than images are; ``None`` for anything else."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) < 12
    number = int(text) if is_number and text is not None else -1
    return number if least <= number <= max(_LARGEST_SIDE, 1 << 32) else None


def points_of_text(text: Optional[str]) -> Optional[Points]:
    """``'1,2;3,4'`` as pairs of finite numbers; ``None`` for anything else."""
    points: Points = []
    for pair in (text or '').split(';'):
        x, comma, y = pair.partition(',')
        found = numbers({'x': x, 'y': y}, ('x', 'y')) if comma else None
        if found is None:
            return None
        points.append((found[0], found[1]))
    return points
