"""Reader of VOC's XML files, which parses them as mmdet does, and functions that correct these files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple
from xml.parsers import expat

import numpy as np

from mmguard.formats.faults import Faults
from mmguard.formats.files import FILES
from mmguard.formats.format import Corrected, NotCorrected, number, parse_corners, shorten_number
from mmguard.formats.options import FixOptions
from mmguard.formats.table import NO_NUMBER
from mmguard.labels.instances import InstanceRule, find_corner_faults
from mmguard.text import quantity, shorten

#: Maximum number of bytes and of elements; usually a file has a few kilobytes, and a few elements per object.
LARGEST, _MOST_ELEMENTS = 64 << 20, 1 << 20
_SIDES = ('xmin', 'ymin', 'xmax', 'ymax')
#: Elements that mmdet looks for, in any namespace.
_PATHS = [
    '{*}' + path.replace('/', '/{*}')
    for path in ('object', 'object/name', 'object/difficult', 'object/bndbox', 'size', 'size/width', 'size/height')
]
_PATHS += [f'{{*}}object/{{*}}bndbox/{{*}}{side}' for side in _SIDES]


class VocObject(NamedTuple):
    """An object in an XML file: its category and its box."""

    name: str  #: Category of the object.
    difficult: bool  #: True if the object is not trained on.
    #: Corners as mmdet computes them: integers, one less than in the file; all ``NO_NUMBER`` if the box is missing.
    corners: Tuple[float, ...]
    written: Tuple[float, ...]  #: Corners as in the file; all ``NO_NUMBER`` if the box is missing.


class VocFile(NamedTuple):
    """Image size and objects in an XML file."""

    size: Optional[Tuple[float, float]]  #: Height and width as written, ``None`` without a ``<size>``.
    objects: List[VocObject]  #: The objects that have a name.


class XmlFault(ValueError):
    """Reason why an XML file cannot be read, and the parser's message."""

    def __init__(self, reason: str, message: object = '') -> None:
        super().__init__(f'{reason}: {message}' if message else reason)
        self.what = reason
        self.detail = message


def parse_xml(text: bytes) -> ET.Element:
    """Parse XML into a tree of bounded size. A file that declares an entity is rejected.

    Raises:
        XmlFault: The file is not XML, is damaged, has too many elements, or declares an entity.
    """
    builder = ET.TreeBuilder()
    count = 0

    def start(tag: str, attributes: Dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > _MOST_ELEMENTS:
            raise XmlFault(f'has more than {_MOST_ELEMENTS:,} elements')
        builder.start(_convert_name(tag), {_convert_name(key): value for key, value in attributes.items()})

    def stop(*_: Any) -> None:
        raise XmlFault('declares an XML entity, which can exhaust the memory: the file is not read')

    parser = expat.ParserCreate(namespace_separator='}')
    parser.buffer_text = True
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda tag: builder.end(_convert_name(tag))  # type: ignore[assignment]
    parser.CharacterDataHandler = builder.data
    parser.EntityDeclHandler = stop
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise XmlFault('is not XML, or is damaged', error) from error
    except XmlFault:
        raise
    except (ValueError, LookupError) as error:  # LookupError: unknown encoding
        raise XmlFault(f'cannot be read: {error}') from error
    return builder.close()


def _convert_name(tag: str) -> str:
    """Convert a tag or attribute name from expat's form, ``namespace}tag``, to ElementTree's, ``{namespace}tag``."""
    return '{' + tag if '}' in tag else tag


def read_voc(path: str, source: str, faults: Faults) -> Optional[VocFile]:
    """Read an XML file as mmdet does. If it cannot be read, add a fault and return ``None``."""
    try:
        text = FILES.read(path, LARGEST)
        if not text.strip():
            raise XmlFault('the file is empty')
        root = parse_xml(text)
    except XmlFault as fault:
        faults.add(fault.what, f'{source}: {fault.detail}' if fault.detail else source)
        return None
    except (OSError, ValueError) as error:
        faults.add(f'cannot be read: {getattr(error, "strerror", None) or error}', source)
        return None
    if any('}' in one.tag for one in root.iter()):
        named = {one for path in _PATHS for one in root.iterfind(path) if '}' in one.tag}
        for first in [one.tag for one in root.iter() if one in named][:1]:
            faults.add('tags are in an XML namespace: mmdet finds none of them', f'{source}: {shorten(first)}')
    size = root.find('size')
    objects = [
        _read_object(one, f'{source}: object {number}', faults) for number, one in enumerate(root.findall('object'), 1)
    ]
    sides = None if size is None else _read_size(size, source, faults)
    return VocFile(sides, [voc_object for voc_object in objects if voc_object is not None])


def _read_size(size: ET.Element, source: str, faults: Faults) -> Tuple[float, float]:
    """Return height and width of a ``<size>``, each ``NO_NUMBER`` if it is missing or not an integer."""
    sides = []
    for side in ('height', 'width'):
        text = size.findtext(side)
        try:
            sides.append(float(int(text or '')))  # same as mmdet, where '640.0' raises a ValueError
        except (ValueError, OverflowError):
            what = f'the size has no {side}' if text is None else f'the {side} is not an integer: mmdet stops here'
            faults.add(what, source if text is None else f'{source}: {shorten(text)}')
            sides.append(NO_NUMBER)
    return sides[0], sides[1]


def _read_object(item: ET.Element, where: str, faults: Faults) -> Optional[VocObject]:
    name, text = item.findtext('name'), item.findtext('difficult', '0')
    if not name:
        faults.add('an object has no name', where)
        return None
    try:
        difficult = int(text) != 0
    except ValueError:
        faults.add('difficult is not an integer: mmdet stops here', f'{where}: {shorten(text)}')
        difficult = False
    written = _read_corners(item, where, faults)
    return VocObject(name, difficult, _subtract_one(written), written)


def _read_corners(item: ET.Element, where: str, faults: Faults) -> Tuple[float, ...]:
    box = item.find('bndbox')
    if box is None:
        faults.add('an object has no bndbox: mmdet stops here', where)
        return (NO_NUMBER,) * 4
    corners = []
    for side in _SIDES:
        text = box.findtext(side, '')
        try:
            corners.append(float(text))
        except ValueError:
            what = 'is not a number' if text.strip() else 'is missing'
            faults.add(f'{side} {what}: mmdet stops here', f'{where}: {shorten(text)}' if text else where)
            return (NO_NUMBER,) * 4
    return tuple(corners)


def _subtract_one(written: Tuple[float, ...]) -> Tuple[float, ...]:
    """Return corners as mmdet computes them, truncated and minus 1. Keep NaN and infinity, at which mmdet stops."""
    return tuple(float(int(number) - 1) if number - number == 0 else number for number in written)


_INF = float('inf')
_WORDS = {'clipped': 'clamped', 'renamed': 'renamed', 'boxes_converted': 'converted', 'no_crowd': 'no longer difficult'}

#: Format of a box -> function that converts its four numbers to corners counted from 1, given the size of the image.
BOX_WRITERS: Dict[str, Callable[..., Tuple[float, ...]]] = {
    'corners': lambda a, b, c, d, *_: (a, b, c, d),
    'fractions': lambda a, b, c, d, width, height: (a * width + 1, b * height + 1, c * width, d * height),
}


def correct_voc(data: bytes, options: FixOptions) -> Corrected:
    """Clamp boxes into the image, then leave out objects that training cannot use.

    VOC counts pixels from 1; a box is checked as mmdet loads it, with 1 subtracted.
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
    corners = np.array([_load_box(item) for item in objects], float).reshape(-1, 4)
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
    """Apply the options to an object in place: its name, ``difficult`` and the format of its box."""
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
    box = _parse_box(item)
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
            'it has a <!DOCTYPE> or <!ENTITY>, which VOC files do not have and which can exhaust the memory'
        )
    try:
        root = parse_xml(data)
    except XmlFault as error:
        raise NotCorrected(f'unreadable: {error}') from error
    if root.tag != 'annotation':
        raise NotCorrected(f'not a VOC annotation: its root is <{root.tag}>')
    return root


def _read_side(text: Optional[str]) -> float:
    """Return the parsed width or height of an image, or infinity if it is missing or not positive."""
    found = number(text)
    return _INF if found is None or found <= 0 else found


def _parse_box(item: ET.Element) -> Optional[Tuple[float, ...]]:
    return parse_corners([item.findtext(f'bndbox/{side}') for side in _SIDES])


def _load_box(item: ET.Element) -> Tuple[float, ...]:
    """Return a box as mmdet loads it: whole numbers, one less than in the file; NaN if a number is missing."""
    found = _parse_box(item)
    return (np.nan,) * 4 if found is None else tuple(float(int(side) - 1) for side in found)


def _clamp(item: ET.Element, width: float, height: float) -> int:
    """Clamp the box of an object in place. Return 1 if the box changed, else 0."""
    corners = np.array([_load_box(item)])
    inside = corners.clip(0, (width, height) * 2)
    if find_corner_faults(corners, (height, width))[0] or (inside == corners).all():
        return 0
    _write_box(item, (inside[0] + 1).tolist())
    return 1
