"""Corrects labels of oriented boxes: names, rows that MMRotate does not take, and corners."""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Dict, List, Optional, Set, Tuple

from mmguard.text.words import counted
from mmguard.tools.fix.boxes import fault_of, shortest
from mmguard.tools.fix.label_files import Corrected, LabelFiles, names_below
from mmguard.tools.fix.options import FixOptions, NotCorrected
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.oriented.dota import BLANK, CUT_BY_EDGE, MARK, lines_of, row_of
from mmguard.tools.scan.annotations.oriented.labels import DOTA, list_folder, oriented_format
from mmguard.tools.scan.annotations.oriented.quads import Quad, in_order, in_unit, pairs, shape_of_quad
from mmguard.tools.scan.annotations.oriented.scan import size_of_image
from mmguard.tools.scan.annotations.oriented.xml import (
    ANGLE,
    CORNERS,
    DIOR,
    HEAD,
    NO_HEAD,
    Reading,
    objects_of,
    quad_of,
    size_of_root,
    tree_of,
)
from mmguard.tools.scan.annotations.shape_target import ShapeTarget
from mmguard.tools.scan.annotations.table import EDGE
from mmguard.tools.scan.sources.folders import is_image_name

_INF = float('inf')
Size = Tuple[float, float]


def files_of_oriented(target: str, options: FixOptions) -> LabelFiles:
    if options.boxes not in ('', 'either', 'corners', 'fractions', 'degrees') or options.scale is not None:
        raise NotCorrected('--boxes of oriented boxes is fractions or degrees; --scale is of other formats')
    written = oriented_format(target)
    asked = ShapeTarget(target)
    listing = list_folder(asked, written, Faults())
    image_of = {label.name: label.image for label in listing.files}
    below = names_below(target) if os.path.isdir(target) else ()
    images = sorted(name for name in below if is_image_name(os.path.basename(name)))

    def correct(data: bytes, name: str) -> Corrected:
        size = size_of_image(listing.images, image_of.get(name, ''), Faults()) or (_INF, _INF)
        return _correct_text(data, options, size) if written == DOTA else _correct_xml(data, options, size, written)

    files = [(os.path.join(asked.root, name), name) for name in (*image_of, *images)]
    return LabelFiles(files, correct, frozenset(images))


def _correct_text(data: bytes, options: FixOptions, size: Size) -> Corrected:
    if options.sizes:
        raise NotCorrected('--sizes is of XML: DOTA does not say how large its images are')
    try:
        lines = lines_of(data)
    except UnicodeDecodeError as error:
        raise NotCorrected(f'unreadable: {error}') from error
    counts: Counter = Counter({'byte order mark cut': int(data.startswith(MARK))})
    dropped: Counter = Counter()
    kept: List[str] = []
    seen: Set[Tuple[object, ...]] = set()
    for line in lines:
        row, why = row_of(line)
        if row is None:
            counts[f'dropped ({"cannot be read" if why else "header"})'] += 1
            dropped[line.strip()[:60]] += bool(why)
            continue
        label = row.label.replace(' ', '-') if row.fault == BLANK else row.label
        quad = Quad(label, pairs(row.numbers), row.difficulty >= CUT_BY_EDGE)
        fresh, why = _judged(quad, size, options, counts)
        key = (fresh.label, *fresh.points)
        why = why or ('twice' if key in seen else '')
        seen.add(key)
        if why:
            counts[f'dropped ({why})'] += 1
            dropped[row.label[:60]] += 1
            continue
        if row.fault:
            counts['written anew'] += 1
        if row.fault or fresh != quad:
            difficulty = CUT_BY_EDGE if fresh.is_cut > quad.is_cut else row.difficulty
            line = ' '.join(
                [*map(_text, (side for point in fresh.points for side in point)), fresh.label, f'{difficulty}']
            )
        kept.append(line.rstrip('\r\n'))
    return _corrected(data, '.txt', ''.join(f'{line}\n' for line in kept).encode(), counts, dropped)


def _correct_xml(data: bytes, options: FixOptions, image: Size, written: str) -> Corrected:
    faults = Faults()
    found = tree_of(data, 'the file', faults)
    if found is None:
        raise NotCorrected(f'unreadable: {"; ".join(faults.to_dict())}')
    root, _ = found
    counts: Counter = Counter()
    dropped: Counter = Counter()
    if options.sizes:
        _swap_sizes(root, written, options, counts)
    size = size_of_root(root, written, '', Faults()) or image
    parents = [root] if written == DIOR else root.findall('HRSC_Objects')
    seen: Set[Tuple[object, ...]] = set()
    for item in objects_of(root, written):
        why = _change(item, written, size, options, counts, seen)
        if why:
            counts[f'dropped ({why})'] += 1
            dropped[(item.findtext('name') or '')[:60]] += 1
            next(parent for parent in parents if item in list(parent)).remove(item)
    try:
        text = ET.tostring(root, encoding='utf-8')
    except RecursionError as error:
        raise NotCorrected('nested too deeply for an annotation') from error
    return _corrected(data, '.xml', text, counts, dropped)


def _change(
    item: ET.Element, written: str, size: Size, options: FixOptions, counts: Counter, seen: Set[Tuple[object, ...]]
) -> str:
    """Changes an object, in place; why it cannot stay."""
    angle = item.find('mbox_ang')
    if options.boxes == 'degrees' and angle is not None:
        angle.text = _text(math.radians(_number(angle.text)))
        counts['turned into radians'] += 1
    quad, why = quad_of(item, Reading(written))
    if quad is None or why == ANGLE:
        return 'cannot be read'
    if why == NO_HEAD:
        for tag, centre in zip(HEAD, ('mbox_cx', 'mbox_cy')):
            _write(item, tag, str(round(_number(item.findtext(centre)))))
        counts['given a head'] += 1
    if written != DIOR and (options.rename or options.boxes == 'fractions'):
        raise NotCorrected(
            'HRSC has numbers of classes, and boxes in pixels: --rename and fractions are of other formats'
        )
    fresh, why = _judged(quad, size, options, counts)
    key = (fresh.label, *fresh.points)
    if why or key in seen:
        return why or 'twice'
    seen.add(key)
    if fresh.label != quad.label:
        _write(item, 'name', fresh.label)
    if fresh.points != quad.points:
        for tag, side in zip(CORNERS, (side for point in fresh.points for side in point)):
            _write(item, f'robndbox/{tag}', _text(side))
    if fresh.is_cut > quad.is_cut:
        _write(item, 'truncated', '1')
    return ''


def _judged(quad: Quad, size: Size, options: FixOptions, counts: Counter) -> Tuple[Quad, str]:
    """A box as it is to be, and why it cannot stay; the counts say what was changed."""
    height, width = size
    fresh = quad._replace(label=options.rename.get(quad.label, quad.label))
    counts['renamed'] += fresh.label != quad.label
    if options.classes is not None and fresh.label not in options.classes:
        return fresh, 'label'
    if options.boxes == 'fractions' and in_unit(quad.points):
        if width == _INF:
            raise NotCorrected('its image is not there, and with it the size to multiply by')
        fresh = fresh._replace(points=[(x * width, y * height) for x, y in quad.points])
        counts['multiplied'] += 1
    points = in_order(fresh.points)
    counts['put in order'] += points is not fresh.points
    fresh = fresh._replace(points=points)
    left, top, right, bottom = shape_of_quad(fresh, 0).corners
    if fault_of((left, top, right, bottom), width, height):
        return fresh, 'box'
    if min(left, top) < -EDGE or right > width + EDGE or bottom > height + EDGE:
        counts['marked as cut'] += not fresh.is_cut
        fresh = fresh._replace(is_cut=True)
    return fresh, ''


def _corrected(data: bytes, ending: str, text: bytes, counts: Counter, dropped: Counter) -> Corrected:
    found = +counts
    if not found:
        return Corrected(data, ending, [], {}, {})
    words = [what if what.startswith('byte') else f'{counted(n, "object")} {what}' for what, n in found.items()]
    return Corrected(text, ending, words, dict(+dropped), dict(found))


def _swap_sizes(root: ET.Element, written: str, options: FixOptions, counts: Counter) -> None:
    if options.sizes != 'swapped':
        raise NotCorrected('--sizes scaled is of a COCO JSON')
    tags: Dict[bool, Tuple[str, str]] = {
        True: ('size/width', 'size/height'),
        False: ('Img_SizeWidth', 'Img_SizeHeight'),
    }
    first, second = map(root.find, tags[written == DIOR])
    if first is not None and second is not None and first.text != second.text:
        first.text, second.text = second.text, first.text
        counts['in an image of swapped width and height'] += 1


def _write(item: ET.Element, path: str, text: str) -> None:
    found = item.find(path)
    if found is None:
        found = ET.SubElement(item, path)
    found.text = text


def _number(text: Optional[str]) -> float:
    try:
        return float(text or '')
    except ValueError:
        return math.nan


def _text(value: float) -> str:
    return f'{shortest(round(value, 6))}'
