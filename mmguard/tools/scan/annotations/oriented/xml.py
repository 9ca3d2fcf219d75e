"""One XML of DIOR or of HRSC, as MMRotate reads it."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union
from xml.parsers import expat

from mmguard.tools.scan.annotations.coco_records import NO_NUMBER, is_writable
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.oriented.quads import Quad, finite, pairs, shape_of_quad, turned
from mmguard.tools.scan.annotations.shape_records import ShapeFile, read_bytes
from mmguard.tools.scan.annotations.voc_xml import parse_xml, size_of_texts

DIOR, HRSC = 'dior', 'hrsc'
#: The class of HRSC, where its kinds of ships are one.
SHIP = 'ship'
CORNERS = tuple(f'{axis}_{side}' for side in ('left_top', 'right_top', 'right_bottom', 'left_bottom') for axis in 'xy')
SIDES = ('xmin', 'ymin', 'xmax', 'ymax')
TURNED = ('mbox_cx', 'mbox_cy', 'mbox_w', 'mbox_h', 'mbox_ang')
HEAD = ('header_x', 'header_y')
#: So much of a file tells what it is.
HEAD_OF_FILE = 1 << 13
#: Radians beyond half a turn are degrees, or slips.
_LARGEST_ANGLE = math.pi + 0.01

#: What is wrong with an object, as MG176 knows it.
NO_NAME = 'an object has no name: mmrotate stops there'
NO_BOX = 'an object has no robndbox: mmrotate stops there'
NO_SIDES = 'an object has no bndbox: mmrotate leaves it out'
NUMBERS = 'a number of a box is missing, or no finite number'
NO_HEAD = 'header_x or header_y is no whole number: mmrotate stops there'
ANGLE = 'mbox_ang is no angle in radians'

Judged = Tuple[Optional[Quad], str]


class Reading(NamedTuple):
    """How XML is read.

    Attributes:
        format (str): ``'dior'`` or ``'hrsc'``.
        upright (bool): Of DIOR, whether ``bndbox`` is trained on, in place of ``robndbox``.
        kinds (dict[str, str], optional): Of HRSC, ``Class_ID`` -> class. Default: all of them are ships.
        least (int): Smaller boxes (of DIOR, those in smaller images) are ignored, as by ``bbox_min_size``.
    """

    format: str
    upright: bool = False
    kinds: Optional[Mapping[str, str]] = None
    least: int = 0


class _Builder:
    """Builds the elements, and knows their lines, which ElementTree does not."""

    def __init__(self) -> None:
        self.lines: Dict[ET.Element, int] = {}
        self.namespaced = ''
        self.tree = ET.TreeBuilder()
        self.parser = expat.ParserCreate(namespace_separator='}')  # as ElementTree does
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self.tree.end
        self.parser.CharacterDataHandler = self.tree.data

    def _start(self, tag: str, attributes: Dict[str, str]) -> None:
        self.namespaced = self.namespaced or (tag if '}' in tag else '')
        self.lines[self.tree.start(tag, attributes)] = self.parser.CurrentLineNumber


def tree_of(text: bytes, source: str, faults: Faults) -> Optional[Tuple[ET.Element, Dict[ET.Element, int]]]:
    """The root of an XML, and the lines of its elements; ``None`` where it is damaged, which is written down."""
    builder = _Builder()
    if not parse_xml(builder.parser, text, source, faults):
        return None
    if builder.namespaced:
        faults.add('tags are in an XML namespace: mmdet finds none of them', f'{source}: {short(builder.namespaced)}')
    return builder.tree.close(), builder.lines


def read_xml(path: str, source: str, faults: Faults, reading: Reading) -> Optional[ShapeFile]:
    """Reads a file; never raises.

    Args:
        path (str): The file.
        source (str): How messages name it.
        faults (Faults): Takes what is wrong; ``None`` is returned where that is all of it.
        reading (Reading): How it is read.
    """
    text = read_bytes(path, source, faults)
    found = None if text is None else tree_of(text, source, faults)
    if found is None:
        return None
    root, lines = found
    size = size_of_root(root, reading.format, source, faults)
    ignored = reading.format == DIOR and size is not None and min(size) < reading.least
    shapes = []
    first: Dict[object, int] = {}
    for item in objects_of(root, reading.format):
        line = lines[item]
        quad, why = quad_of(item, reading)
        if why:
            faults.add(why, f'{source}: line {line}')
        if quad is not None and is_writable(quad.label):
            shape = shape_of_quad(quad._replace(ignored=quad.ignored or ignored), line)
            shapes.append(shape._replace(again=first.setdefault((quad.label, *quad.points), line) != line))
    return ShapeFile(source, '', size, '', shapes)


def objects_of(root: ET.Element, written: str) -> List[ET.Element]:
    return root.findall('object' if written == DIOR else 'HRSC_Objects/HRSC_Object')


def quad_of(item: ET.Element, reading: Reading) -> Judged:
    """What an element stands for, and what is wrong with it; ``None`` where nothing can be made of it."""
    is_cut = (item.findtext('truncated') or '').strip() not in ('', '0')
    quad, why = _READERS[reading.format](item, reading)
    return (None if quad is None else quad._replace(is_cut=is_cut)), why


def _of_dior(item: ET.Element, reading: Reading) -> Judged:
    name = item.findtext('name')
    if not name:
        return None, NO_NAME
    box = item.find('bndbox' if reading.upright else 'robndbox')
    if box is None:
        return None, NO_SIDES if reading.upright else NO_BOX
    numbers = finite([box.findtext(key) for key in (SIDES if reading.upright else CORNERS)])
    if numbers is None:
        return None, NUMBERS
    if reading.upright:
        left, top, right, bottom = numbers
        has_area = right > left and bottom > top
        return Quad(name.lower(), [(left, top), (right, top), (right, bottom), (left, bottom)], has_area=has_area), ''
    return Quad(name.lower(), pairs(numbers)), ''


def _of_hrsc(item: ET.Element, reading: Reading) -> Judged:
    label = SHIP
    if reading.kinds is not None:
        number = item.findtext('Class_ID')
        if not number:
            return None, NO_NAME
        label = reading.kinds.get(number, number)
    numbers = finite([item.findtext(key) for key in TURNED])
    if numbers is None:
        return None, NUMBERS
    why = '' if all(_is_whole(item.findtext(key)) for key in HEAD) else NO_HEAD
    if abs(numbers[-1]) > _LARGEST_ANGLE:
        why = ANGLE
    least = min(numbers[2:4])
    return Quad(label, turned(numbers), ignored=least < reading.least, has_area=least > 0), why


_READERS: Dict[str, Callable[[ET.Element, Reading], Judged]] = {DIOR: _of_dior, HRSC: _of_hrsc}


def _is_whole(text: Union[str, None]) -> bool:
    try:
        int(text or '')
    except ValueError:
        return False
    return True


def size_of_root(root: ET.Element, written: str, source: str, faults: Faults) -> Optional[Tuple[float, float]]:
    """Height and width. MMRotate asks HRSC for the width alone, and looks at the image where DIOR has no size."""
    if written == DIOR:
        size = root.find('size')
        if size is None:
            return None
        said = {side: size.findtext(side) for side in ('height', 'width')}
    else:
        width, height = root.findtext('Img_SizeWidth'), root.findtext('Img_SizeHeight')
        said = {'height': width if height is None else height, 'width': width}
    found = size_of_texts({side: text for side, text in said.items() if text is not None}, source, faults)
    return None if NO_NUMBER in found or (written == HRSC and height is None) else found


def format_of_xml(head: bytes) -> str:
    """``'dior'`` or ``'hrsc'``, by the beginning of an XML; empty: neither."""
    return HRSC if b'<HRSC_Image' in head else DIOR if b'<x_left_top>' in head else ''
