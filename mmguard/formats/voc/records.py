"""One XML file of a VOC data set, read as far as mmdet reads it."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple
from xml.parsers import expat

from mmguard.formats.faults import Faults
from mmguard.formats.table import NO_NUMBER
from mmguard.text import shorten

#: The annotation of one image has a few kilobytes.
LARGEST = 64 << 20
_SIDES = ('xmin', 'ymin', 'xmax', 'ymax')
#: Tag paths that mmdet reads; the first of equal ones counts.
_WANTED: Set[Tuple[str, ...]] = {('object', 'name'), ('object', 'difficult'), ('size', 'width'), ('size', 'height')}
_WANTED |= {('object', 'bndbox', side) for side in _SIDES}
_LEADING = {path[:depth] for path in _WANTED for depth in (1, 2, 3)}
#: Separator of namespace and tag in ElementTree.
_BEHIND_NAMESPACE = '}'


#: Callable that returns the content of a file, or raises an OSError.
Text = Callable[[], bytes]


class VocObject(NamedTuple):
    """An annotated object."""

    name: str  #: Name of its category.
    difficult: bool  #: True if it is not trained on.
    #: Corners as mmdet computes them: integers, one less than in the file; ``NO_NUMBER`` throughout without a box.
    corners: Tuple[float, ...]


class VocFile(NamedTuple):
    """An annotation file."""

    size: Optional[Tuple[float, float]]  #: Height and width as written, ``None`` without a ``<size>``.
    objects: List[VocObject]  #: The objects that have a name.


def read_voc(read: Text, source: str, faults: Faults) -> Optional[VocFile]:
    """Read a file without raising. A file that declares an entity is rejected, because entities are not followed."""
    reader = _Reader()
    try:
        text = read()
    except (OSError, ValueError) as error:
        faults.add(f'cannot be read: {getattr(error, "strerror", None) or error}', source)
        return None
    if len(text) > LARGEST:
        faults.add(f'is larger than {LARGEST >> 20} MiB', source)
        return None
    if not text.strip():
        faults.add('the file is empty', source)
        return None
    if not _parse(reader.parser(), text, source, faults):
        return None
    if reader.namespaced:
        faults.add('tags are in an XML namespace: mmdet finds none of them', f'{source}: {shorten(reader.namespaced)}')
    size = None if reader.size is None else _size(reader.size, source, faults)
    objects = [_object(found, number, source, faults) for number, found in enumerate(reader.objects)]
    return VocFile(size, [voc_object for voc_object in objects if voc_object is not None])


class _EntityError(Exception):
    pass


def _parse(parser: expat.XMLParserType, text: bytes, source: str, faults: Faults) -> bool:
    """Parse an XML without following entities; return True if it is valid, otherwise record a fault."""

    def stop(*_: Any) -> None:
        raise _EntityError

    parser.EntityDeclHandler = stop
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        faults.add('is not XML, or is damaged', f'{source}: {error}')
    except _EntityError:
        faults.add('declares an XML entity: not read, it may be hostile', source)
    except (ValueError, LookupError) as error:  # LookupError: unknown encoding
        faults.add(f'cannot be read: {error}', source)
    else:
        return True
    return False


class _Reader:
    """Collector of the text of the wanted elements, and of the first namespaced tag on the path to one."""

    def __init__(self) -> None:
        self.size: Optional[Dict[str, str]] = None
        self.objects: List[Dict[str, Any]] = []
        self.namespaced = ''
        self._path: List[str] = []
        self._into: Optional[Dict[str, str]] = None
        self._key = ''
        self._box: Optional[Dict[str, str]] = None
        self._current: Optional[Dict[str, str]] = None

    def parser(self) -> expat.XMLParserType:
        parser = expat.ParserCreate(namespace_separator=_BEHIND_NAMESPACE)  # same separator as ElementTree
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        return parser

    def _start(self, tag: str, _: Any) -> None:
        self._path.append(tag)
        depth = len(self._path)
        self._into = None
        if _BEHIND_NAMESPACE in tag and depth <= 4 and self._names() in _LEADING:
            self.namespaced = self.namespaced or '{' + tag
        if depth == 2:
            self._box = self._current = None
            if tag == 'object':
                self._current = {}
                self.objects.append(self._current)
            elif tag == 'size' and self.size is None:
                self._current = self.size = {}
        elif depth == 3 and tag == 'bndbox' and self._current is not None:
            # mmdet does not read a second box of the same object.
            self._box = self._current if 'bndbox' not in self._current else None
            self._current['bndbox'] = ''
        elif depth > 4 or (depth == 4 and self._path[2] != 'bndbox'):
            return  # nothing is read there; building the path for every tag of a deeply nested file is quadratic
        path = tuple(self._path[1:])
        if path in _WANTED:
            self._into = self._box if depth == 4 else self._current
            self._key = tag
            if self._into is not None:
                if tag in self._into:
                    self._into = None
                else:
                    self._into[tag] = ''

    def _names(self) -> Tuple[str, ...]:
        """Return the current path without namespaces."""
        return tuple(tag.rpartition(_BEHIND_NAMESPACE)[2] for tag in self._path[1:])

    def _end(self, _: str) -> None:
        self._path.pop()
        self._into = None

    def _text(self, text: str) -> None:
        if self._into is not None:
            self._into[self._key] += text


def _size(found: Dict[str, str], source: str, faults: Faults) -> Tuple[float, float]:
    """Return the height and width of an XML; ``NO_NUMBER`` for a value that is not an integer."""
    sides = []
    for side in ('height', 'width'):
        text = found.get(side)
        try:
            sides.append(float(int(text or '')))  # same as mmdet, where '640.0' raises a ValueError
        except (ValueError, OverflowError):
            what = f'the size has no {side}' if text is None else f'the {side} is not a whole number: mmdet stops here'
            faults.add(what, source if text is None else f'{source}: {shorten(text)}')
            sides.append(NO_NUMBER)
    return sides[0], sides[1]


def _object(found: Dict[str, str], number: int, source: str, faults: Faults) -> Optional[VocObject]:
    where = f'{source}: object {number + 1}'
    if not found.get('name'):
        faults.add('an object has no name', where)
        return None
    try:
        difficult = int(found.get('difficult', '0')) != 0
    except ValueError:
        faults.add('difficult is not a whole number: mmdet stops here', f'{where}: {shorten(found["difficult"])}')
        difficult = False
    return VocObject(found['name'], difficult, _corners(found, where, faults))


def _corners(found: Dict[str, str], where: str, faults: Faults) -> Tuple[float, ...]:
    if 'bndbox' not in found:
        faults.add('an object has no bndbox: mmdet stops here', where)
        return (NO_NUMBER,) * 4
    corners = []
    for side in _SIDES:
        text = found.get(side, '')
        try:
            number = float(text)
        except ValueError:
            what = 'is not a number' if text.strip() else 'is missing'
            faults.add(f'{side} {what}: mmdet stops here', f'{where}: {shorten(text)}' if text else where)
            return (NO_NUMBER,) * 4
        # int() truncates, but raises for NaN and infinity, where mmdet stops.
        finite = number - number == 0
        corners.append(float(int(number) - 1) if finite else number)
    return tuple(corners)
