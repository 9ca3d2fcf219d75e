"""Corrects XML of CVAT: names, shapes that give no object, and points outside of the image."""

from __future__ import annotations

import os
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Mapping, Optional, Tuple

from mmguard.text.words import counted
from mmguard.tools.fix.boxes import clamped, fault_of, shortest
from mmguard.tools.fix.label_files import Corrected, LabelFiles, names_below
from mmguard.tools.fix.options import FixOptions, NotCorrected
from mmguard.tools.scan.annotations.cvat import NO_CLASS, cvat_names
from mmguard.tools.scan.annotations.cvat_xml import (
    NO_SHAPES,
    is_outside,
    of_track,
    points_of_text,
    shape_of_element,
    whole,
)
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.shape_records import NO_AREA, Shape
from mmguard.tools.scan.annotations.shape_target import folder_of
from mmguard.tools.scan.sources.folders import is_image_name

_INF = float('inf')
_SIDES = ('xtl', 'ytl', 'xbr', 'ybr')


def files_of_cvat(target: str, options: FixOptions) -> LabelFiles:
    root = folder_of(target)
    is_folder = os.path.isdir(target)
    names = cvat_names(target) if is_folder else [os.path.basename(target)]
    beside = names_below(os.path.join(root, 'images')) if is_folder else ()
    images = sorted(os.path.join('images', name) for name in beside if is_image_name(os.path.basename(name)))
    return LabelFiles(
        [(os.path.join(root, name), name) for name in (*names, *images)],
        lambda data, _: correct_cvat(data, options),
        frozenset(images),
    )


def correct_cvat(data: bytes, options: FixOptions) -> Corrected:
    """Corrects a file; one that is right stays as it is written.

    Args:
        data (bytes): The file.
        options (FixOptions): ``classes`` are the names that are valid; ``None``: any.

    Raises:
        NotCorrected: It is damaged, or declares a document type (which could hold anything).
    """
    if options.boxes not in ('', 'either', 'corners') or options.scale is not None or options.sizes == 'scaled':
        raise NotCorrected('--boxes and --scale are of other formats: CVAT has points in pixels')
    root = _read(data)
    counts: Counter = Counter()
    dropped: Counter = Counter()
    _rename_declared(root, options)
    for image in root.findall('image'):
        width, height = image.get('width'), image.get('height')
        if options.sizes and width is not None and height is not None and width != height:
            image.set('width', height)
            image.set('height', width)
            counts['width and height swapped'] += 1
        size = _side(image.get('width')), _side(image.get('height'))
        _correct_shapes(image, size, options, counts, dropped)
    for track in root.findall('track'):
        sides = [{one.text for one in root.findall(f'meta//original_size/{side}')} for side in ('width', 'height')]
        of_video = [_side(side.pop() if len(side) == 1 else None) for side in sides]
        _correct_shapes(track, (of_video[0], of_video[1]), options, counts, dropped)
        track.set('label', options.rename.get(track.get('label', ''), track.get('label', '')))
    counts = +counts
    if not counts:
        return Corrected(data, '.xml', [], {}, {})
    words = [
        what if what.startswith('width') else f'{counted(number, "shape")} {what}' for what, number in counts.items()
    ]
    try:
        text = ET.tostring(root, encoding='utf-8', xml_declaration=True)
    except RecursionError as error:
        raise NotCorrected('nested too deeply for an annotation') from error
    return Corrected(text, '.xml', words, dict(dropped), dict(counts))


def _correct_shapes(
    place: ET.Element, size: Tuple[float, float], options: FixOptions, counts: Counter, dropped: Counter
) -> None:
    """Corrects what is drawn on an image, or where a track is in its frames."""
    for element in list(place):
        is_of_track = place.tag == 'track'
        if element.tag in NO_SHAPES or (is_of_track and is_outside(element.attrib)):
            continue
        attributes = of_track(place.attrib, element.attrib) if is_of_track else element.attrib
        why = _corrected(element, attributes, size, options, counts)
        if why:
            counts[f'dropped ({why})'] += 1
            dropped[attributes.get('label', '')[:60]] += 1
            place.remove(element)


def _read(data: bytes) -> ET.Element:
    if b'<!DOCTYPE' in data or b'<!ENTITY' in data:
        raise NotCorrected('it declares a document type: no file of CVAT does, and it can exhaust the memory')
    try:
        root = ET.fromstring(data)
    except (ET.ParseError, ValueError, LookupError) as error:
        raise NotCorrected(f'unreadable: {type(error).__name__}: {error}') from error
    if root.tag != 'annotations':
        raise NotCorrected(f'no file of CVAT: its root is <{root.tag}>')
    return root


def _rename_declared(root: ET.Element, options: FixOptions) -> None:
    """Labels that are declared under the names that they get, each once."""
    for labels in root.findall('meta//labels'):
        known = set()
        for label in labels.findall('label'):
            name = label.find('name')
            if name is None:
                continue
            name.text = options.rename.get(name.text or '', name.text)
            if name.text in known and name.text in options.rename.values():
                labels.remove(label)
            known.add(name.text)


def _side(text: Optional[str]) -> float:
    """A size; infinite where the file does not say."""
    side = whole(text)
    return _INF if side is None else float(side)


def _corrected(
    element: ET.Element, attributes: Mapping[str, str], size: Tuple[float, float], options: FixOptions, counts: Counter
) -> Optional[str]:
    """Changes a shape, in place; why it cannot stay."""
    shape = shape_of_element(element.tag, attributes, 0, '', Faults())
    if shape is None:
        return 'cannot be read'
    name = options.rename.get(shape.label, shape.label)
    if name != shape.label:
        if 'label' in element.attrib:
            element.set('label', name)
        counts['renamed'] += 1
    if options.classes is not None and name not in (*options.classes, *NO_CLASS):
        return 'label'
    if shape.fault:
        return None if shape.fault == NO_AREA else 'no area'
    return _clamped(element, shape, size, counts)


def _clamped(element: ET.Element, shape: Shape, size: Tuple[float, float], counts: Counter) -> Optional[str]:
    width, height = size
    left, top, right, bottom = shape.corners
    corners = (left, top, right, bottom)
    if fault_of(corners, width, height):
        return 'box'
    inside = clamped(corners, width, height)
    if inside == corners or shape.kind not in ('box', 'polygon') or element.get('rotation', '0') not in ('0', '0.0'):
        return None
    if shape.kind == 'box':
        for side, value in zip(_SIDES, inside):
            element.set(side, str(shortest(float(value))))
    else:
        points = points_of_text(element.get('points')) or []
        pairs = ((min(max(x, 0), width), min(max(y, 0), height)) for x, y in points)
        element.set('points', ';'.join(','.join(str(shortest(float(one))) for one in pair) for pair in pairs))
    counts['clamped'] += 1
    return None
