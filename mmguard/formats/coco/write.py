"""Correction of a COCO or LVIS JSON: annotations with an invalid category, box or image."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from mmguard.files.containment import find_inside
from mmguard.formats.correction import (
    Corners,
    Corrected,
    NotCorrected,
    clamp,
    find_box_fault,
    number,
    parse_corners,
    shorten_number,
)
from mmguard.formats.options import FixOptions
from mmguard.formats.table import LARGEST_SIDE
from mmguard.labels.instances import BOX_REASONS, InstanceRule
from mmguard.text import quantity


def correct_coco(data: bytes, options: FixOptions) -> Corrected:
    """Clamp boxes into their images, then leave out annotations that training cannot use.

    With ``keep_boxes``, no annotation is changed or left out because of its box. ``label_map`` maps category ids;
    categories after the first ``num_classes`` are invalid.
    """
    record = _read(data)
    counts: Counter = Counter()
    before = [annotation.get('category_id') for annotation in record['annotations']]
    _apply_options(record, options, counts)
    values: Counter = Counter(
        str(old) for old, new in zip(before, record['annotations']) if old != new.get('category_id')
    )
    place_of = {category['id']: place for place, category in enumerate(record['categories'])}
    usable = [image for image in record['images'] if _is_usable(image)]
    if record['images'] and not usable:
        raise NotCorrected('no image has a file_name, a width and a height above 0: add them first')
    counts['image_unusable'] += len(record['images']) - len(usable)
    sizes = {image['id']: get_size(image) or () for image in usable}
    known = min(options.num_classes or len(record['categories']), len(record['categories'])) or 1
    listed = [annotation for annotation in record['annotations'] if get_id(annotation, 'image_id') in sizes]
    counts['image_not_listed'] += len(record['annotations']) - len(listed)
    faults = [0] * len(listed)
    if not options.keep_boxes:
        for annotation in listed:
            _clamp_into_image(annotation, sizes[annotation['image_id']], counts)
        faults = [find_box_fault(_get_corners(annotation), *sizes[annotation['image_id']]) for annotation in listed]
    places = np.array([place_of.get(get_id(annotation, 'category_id'), -1) for annotation in listed], dtype=np.int64)
    crowds = np.array([bool(annotation.get('iscrowd')) for annotation in listed], dtype=bool)
    corrected = InstanceRule(known, 'drop').sanitize(places, crowds & (places >= 0), np.array(faults, dtype=np.int64))
    counts.update(corrected.tally.reasons)
    kept = listed
    if corrected.dropped is not None:
        kept = [annotation for annotation, drop in zip(listed, corrected.dropped) if not drop]
        for annotation, drop, fault in zip(listed, corrected.dropped, faults):
            if drop and not fault:
                values[str(annotation.get('category_id'))] += 1
    if options.drop_empty:
        held = {annotation['image_id'] for annotation in kept if not annotation.get('iscrowd')}
        counts['image_empty'] += sum(image['id'] not in held for image in usable)
        usable = [image for image in usable if image['id'] in held]
        kept = [annotation for annotation in kept if annotation['image_id'] in held]
    counts = +counts
    if not counts:
        return Corrected(data, '.json', [], {}, {})
    if before and not kept:
        raise NotCorrected(f'no annotation would be left: {"; ".join(_describe(counts))}')
    text = json.dumps({**record, 'images': usable, 'annotations': kept}, ensure_ascii=False)
    # JSON can hold a lone surrogate only as an escape.
    return Corrected(text.encode(errors='backslashreplace'), '.json', _describe(counts), dict(values), dict(counts))


def _read(data: bytes) -> Dict[str, Any]:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotCorrected(f'unreadable: {type(error).__name__}: {error}') from error
    for key in ('images', 'annotations', 'categories'):
        entries = record.get(key) if isinstance(record, dict) else None
        is_list = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
        if not is_list or (key != 'annotations' and any(get_id(entry) is None for entry in entries or [])):
            raise NotCorrected(f'not a COCO JSON: `{key}` is not a list of objects with an id')
    if any('segments_info' in annotation for annotation in record['annotations']):
        raise NotCorrected('COCO panoptic: its annotations are segments of a PNG, not boxes')
    return record


def _is_usable(image: Dict[str, Any]) -> bool:
    """Return True if a loader can find an image and knows its size."""
    names = [image[key] for key in ('file_name', 'coco_url') if image.get(key) is not None]
    return get_size(image) is not None and any(names) and all(isinstance(name, str) for name in names)


def _get_corners(annotation: Dict[str, Any]) -> Optional[Corners]:
    box = parse_corners(annotation.get('bbox'))
    return None if box is None else (box[0], box[1], box[0] + box[2], box[1] + box[3])


def _clamp_into_image(annotation: Dict[str, Any], size: Tuple[float, ...], counts: Counter) -> None:
    """Clamp the box of an annotation into its image, and set its area, which mmdet reads."""
    corners = _get_corners(annotation)
    if corners is None or find_box_fault(corners, *size):
        return
    inside = clamp(corners, *size)
    is_new = inside != corners
    if is_new:
        counts['clipped'] += 1
        left, top, right, bottom = inside
        annotation['bbox'] = [shorten_number(float(side)) for side in (left, top, right - left, bottom - top)]
    area = annotation.get('area')
    known = None if isinstance(area, str) else number(area)
    has_area = known is not None and known > 0
    if not has_area or (is_new and not annotation.get('segmentation')):
        counts['area_added'] += not has_area
        annotation['area'] = annotation['bbox'][2] * annotation['bbox'][3]


def _describe(counts: Counter) -> List[str]:
    said = {
        'label': ('annotation', 'of an unknown category dropped'),
        'image_not_listed': ('annotation', 'of unlisted images dropped'),
        'remapped': ('annotation', 'remapped'),
        'area_added': ('area', 'written'),
        'texts_to_numbers': ('record', 'with strings converted to numbers'),
        'numbers_to_names': ('name', 'of categories written as strings'),
        'ids_renumbered': ('annotation', 'renumbered'),
        'categories_changed': ('list', 'of categories rewritten'),
        'outlined': ('box', 'added around polygons'),
        'boxes_converted': ('box', 'converted'),
        'no_crowd': ('annotation', 'turned from a crowd into an object'),
        'image_unusable': ('image', 'without a usable file_name, width or height left out'),
        'image_empty': ('image', 'without an object left out'),
        'image_renamed': ('image', 'named as on disk'),
        'image_missing': ('image', 'not on disk left out'),
        'clipped': ('box', 'clamped into the image'),
    }
    said.update({reason: ('annotation', f'dropped ({reason})') for reason in BOX_REASONS if reason})
    return [f'{quantity(count, said[key][0])} {said[key][1]}' for key, count in sorted(counts.items())]


Record = Dict[str, Any]

_SIDES = ('width', 'height')

#: Format of a box -> its x, y, width and height, in an image of some width and height.
BOX_WRITERS: Dict[str, Callable[..., Tuple[float, ...]]] = {
    'sizes': lambda a, b, c, d, *_: (a, b, c, d),
    'corners': lambda a, b, c, d, *_: (a, b, c - a, d - b),
    'fractions': lambda a, b, c, d, width, height: (a * width, b * height, c * width, d * height),
}


def _apply_options(record: Record, options: FixOptions, counts: Counter) -> None:
    """Apply the options to a COCO file in place; raise :class:`NotCorrected` if it cannot be corrected."""
    for change in (
        _parse_numbers,
        _renumber_annotations,
        _map_categories,
        _name_categories,
        _renumber_categories,
        _add_boxes,
        _convert_boxes,
        _turn_crowds,
        _match_images,
    ):
        change(record, options, counts)


def _parse_numbers(record: Record, _: FixOptions, counts: Counter) -> None:
    """Parse numbers in strings: an id ``"1"`` does not equal 1."""
    known = {key: {get_id(entry) for entry in record[key]} for key in ('images', 'categories')}
    for annotation in record['annotations']:
        new: Record = {}
        for key, ids in (('image_id', known['images']), ('category_id', known['categories'])):
            value = annotation.get(key)
            whole = _parse_whole(value)
            if isinstance(value, str) and value not in ids and whole in ids:
                new[key] = whole
        boxed = parse_corners(annotation.get('bbox'))
        if boxed is not None and any(isinstance(part, str) for part in annotation['bbox']):
            new['bbox'] = list(map(shorten_number, boxed))
        annotation.update(new)
        counts['texts_to_numbers'] += bool(new)
    for category in record['categories']:
        if not isinstance(category.get('name'), str):
            category['name'] = str(category.get('name'))
            counts['numbers_to_names'] += 1
    for image in record['images']:
        texts = {side: number(image[side]) for side in _SIDES if isinstance(image.get(side), str)}
        found = {side: shorten_number(size) for side, size in texts.items() if size is not None}
        image.update(found)
        counts['texts_to_numbers'] += bool(found)


def _renumber_annotations(record: Record, _: FixOptions, counts: Counter) -> None:
    """Renumber the annotations if an id is missing or duplicate; nothing refers to these ids."""
    ids = [get_id(annotation) for annotation in record['annotations']]
    if None in ids or len(set(ids)) < len(ids):
        counts['ids_renumbered'] += len(ids)
        for place, annotation in enumerate(record['annotations'], 1):
            annotation['id'] = place


def _map_categories(record: Record, options: FixOptions, counts: Counter) -> None:
    """Map category ids; remove a mapped category unless another is mapped to its id."""
    wanted = {raw: new for raw, new in options.label_map.items() if raw != new}
    known = {get_id(category) for category in record['categories']}
    unknown = {raw: new for raw, new in wanted.items() if new not in known}
    if unknown:
        raise NotCorrected(f'--label-map maps to category ids that the file lacks: {unknown}')
    gone = set(wanted) - set(wanted.values())
    _change_categories(record, wanted, counts)
    record['categories'] = [category for category in record['categories'] if get_id(category) not in gone]


def _name_categories(record: Record, options: FixOptions, counts: Counter) -> None:
    """Rename categories, merge those with the same name, and put them into the requested order."""
    if not options.rename and options.classes is None:
        return
    before = [dict(category) for category in record['categories']]
    first: Dict[str, Any] = {}
    for category in record['categories']:
        category['name'] = options.rename.get(category['name'], category['name'])
        first.setdefault(category['name'], category)
    merged = {get_id(one): get_id(first[one['name']]) for one in record['categories'] if one is not first[one['name']]}
    listed = list(first.values())
    if options.classes is not None:
        unused = max([0, *(number for number in map(get_id, record['categories']) if isinstance(number, int))])
        added = [name for name in options.classes if name not in first]
        first.update({name: {'id': unused + n, 'name': name} for n, name in enumerate(added, 1)})
        listed = [dict(first[name]) for name in options.classes]
    counts['categories_changed'] += listed != before
    _change_categories(record, merged, counts)
    record['categories'] = listed


def _renumber_categories(record: Record, options: FixOptions, counts: Counter) -> None:
    if options.renumber is not None:
        ids = {get_id(category): place for place, category in enumerate(record['categories'], options.renumber)}
        _change_categories(record, ids, counts)
        for category in record['categories']:
            category['id'] = ids[get_id(category)]


def _add_boxes(record: Record, _: FixOptions, counts: Counter) -> None:
    """Add boxes around polygons to annotations without a box."""
    for annotation in record['annotations']:
        polygons = annotation.get('segmentation')
        points = [part for polygon in polygons for part in polygon] if are_polygons(polygons) else []
        if annotation.get('bbox') is None and len(points) > 1:
            xs, ys = points[::2], points[1::2]
            box = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
            annotation['bbox'] = [shorten_number(float(part)) for part in box]
            counts['outlined'] += 1


def _convert_boxes(record: Record, options: FixOptions, counts: Counter) -> None:
    if options.boxes in ('', 'sizes'):
        return
    if options.boxes not in BOX_WRITERS:
        raise NotCorrected(f'--boxes for a COCO JSON must be one of {", ".join(BOX_WRITERS)}, got {options.boxes}')
    sizes = {get_id(image): get_size(image) for image in record['images']}
    for annotation in record['annotations']:
        box = parse_corners(annotation.get('bbox'))
        size = sizes.get(get_id(annotation, 'image_id'))
        if box is not None and (options.boxes != 'fractions' or size is not None):
            new = [shorten_number(float(round(part, 4))) for part in BOX_WRITERS[options.boxes](*box, *(size or ()))]
            counts['boxes_converted'] += 1
            annotation['bbox'] = new
            if not annotation.get('segmentation'):
                annotation['area'] = new[2] * new[3]


def _turn_crowds(record: Record, options: FixOptions, counts: Counter) -> None:
    """Turn crowds into objects if the options ask for it."""
    for annotation in record['annotations'] if options.no_crowds else ():
        if annotation.get('iscrowd') or annotation.get('ignore'):
            annotation['iscrowd'] = 0
            annotation.pop('ignore', None)
            counts['no_crowd'] += 1


def _match_images(record: Record, options: FixOptions, counts: Counter) -> None:
    """Rename images as on disk, and leave out missing ones."""
    if options.images is None:
        return
    try:
        on_disk = {name.lower(): name for name in os.listdir(options.images)}
    except OSError as error:
        raise NotCorrected(f'--images {options.images} cannot be read: {error.strerror}') from error
    there = []
    for image in record['images']:
        name = str(image.get('file_name') or '')
        if not os.path.isfile(find_inside(options.images, name)):
            # The name is from another machine: it may differ in folders, separators and case.
            found = on_disk.get(name.replace('\\', '/').rpartition('/')[2].lower())
            counts['image_missing' if found is None else 'image_renamed'] += 1
            if found is None:
                continue
            image['file_name'] = found
        there.append(image)
    record['images'] = there


def _change_categories(record: Record, ids: Dict[Any, Any], counts: Counter) -> None:
    for annotation in record['annotations'] if ids else ():
        known = get_id(annotation, 'category_id')
        if ids.get(known, known) != known:
            counts['remapped'] += 1
            annotation['category_id'] = ids[known]


def get_size(image: Record) -> Optional[Tuple[float, float]]:
    """Return width and height; ``None`` unless they are two positive numbers of pixels."""
    width, height = (None if isinstance(image.get(side), str) else number(image.get(side)) for side in _SIDES)
    if width is None or height is None or min(width, height) <= 0 or max(width, height) > LARGEST_SIDE:
        return None
    return width, height


def are_polygons(outline: Any) -> bool:
    """Return True if an outline is a list of lists of numbers."""
    return isinstance(outline, list) and all(
        isinstance(polygon, list)
        and all(isinstance(part, (int, float)) and number(part) is not None for part in polygon)
        for polygon in outline
    )


def get_id(entry: Record, name: str = 'id') -> Any:
    """Return an id; ``None`` if it is missing or of the wrong type."""
    value = entry.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # equal to the float, and the same key
    return value if isinstance(value, (int, str)) else None


def _parse_whole(value: Any) -> Optional[int]:
    found = number(value)
    return None if found is None or not found.is_integer() else int(found)
