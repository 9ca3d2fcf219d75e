"""Correction of annotations with an invalid category, box or image in a COCO or LVIS JSON."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np

from mmguard.files.containment import find_inside
from mmguard.formats.format import Corrected, NotCorrected, number, parse_corners, shorten_number
from mmguard.formats.options import FixOptions
from mmguard.formats.table import LARGEST_SIDE
from mmguard.labels.instances import BOX_REASONS, InstanceRule, find_corner_faults
from mmguard.text import quantity

#: Kind of change -> (kind of element, how the elements were changed).
_WORDS = {
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
    'image_unusable': ('image', 'left out: no usable file_name, width or height'),
    'image_empty': ('image', 'left out: no object'),
    'image_renamed': ('image', 'renamed as on disk'),
    'image_missing': ('image', 'left out: not on disk'),
    'clipped': ('box', 'clamped into the image'),
    **{reason: ('annotation', f'dropped ({reason})') for reason in BOX_REASONS if reason},
}

Record = Dict[str, Any]

_SIDES = ('width', 'height')
#: Key of an id in an annotation -> key of the list whose entries have this id.
_REFERENCES = {'image_id': 'images', 'category_id': 'categories'}
_LARGEST = np.finfo(float).max

#: Format of a box -> function that converts its four numbers to x, y, width, height, given the size of the image.
BOX_WRITERS: Dict[str, Callable[..., Tuple[float, ...]]] = {
    'sizes': lambda a, b, c, d, *_: (a, b, c, d),
    'corners': lambda a, b, c, d, *_: (a, b, c - a, d - b),
    'fractions': lambda a, b, c, d, width, height: (a * width, b * height, c * width, d * height),
}


def correct_coco(data: bytes, options: FixOptions) -> Corrected:
    """Clamp boxes into their images, then leave out annotations that training cannot use.

    With ``keep_boxes``, no annotation is changed or left out because of its box. ``label_map`` maps category ids;
    categories after the first ``num_classes`` are invalid.
    """
    record = _read(data)
    before = [one.get('category_id') for one in record['annotations']]
    file = _File(record, options)
    file.apply_options()
    values = Counter(str(old) for old, new in zip(before, record['annotations']) if old != new.get('category_id'))
    file.select_images()
    values.update(file.select_annotations())
    counts = +file.counts
    if not counts:
        return Corrected(data, '.json', [], {}, {})
    changes = [f'{quantity(count, _WORDS[key][0])} {_WORDS[key][1]}' for key, count in sorted(counts.items())]
    if before and not record['annotations']:
        raise NotCorrected(f'no annotation would be left: {"; ".join(changes)}')
    text = json.dumps(record, ensure_ascii=False)
    # JSON can hold a lone surrogate only as an escape.
    return Corrected(text.encode(errors='backslashreplace'), '.json', changes, dict(values), dict(counts))


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


class _File:
    """JSON content of a file, which the methods correct in place, and the number of changes of each kind."""

    def __init__(self, record: Record, options: FixOptions) -> None:
        self.record = record
        self.options = options
        self.counts: Counter = Counter()

    def apply_options(self) -> None:
        """Apply the options to images, categories and annotations.

        Raises:
            NotCorrected: The options name an unknown box format, or a category id that the file lacks.
        """
        record, options, counts = self.record, self.options, self.counts
        known = {key: set(map(get_id, record[name])) for key, name in _REFERENCES.items()}
        ids = [get_id(annotation) for annotation in record['annotations']]
        is_renumbered = None in ids or len(set(ids)) < len(ids)  # nothing refers to these ids
        counts['ids_renumbered'] += is_renumbered * len(ids)
        for image in record['images']:
            texts = {side: number(image[side]) for side in _SIDES if isinstance(image.get(side), str)}
            found = {side: shorten_number(size) for side, size in texts.items() if size is not None}
            image.update(found)
            counts['texts_to_numbers'] += bool(found)
        sizes = {get_id(image): get_size(image) for image in record['images']}
        steps = self._correct_categories()
        if options.boxes and options.boxes not in BOX_WRITERS:
            raise NotCorrected(f'--boxes for a COCO JSON must be one of {", ".join(BOX_WRITERS)}, got {options.boxes}')
        for place, annotation in enumerate(record['annotations'], 1):
            counts['texts_to_numbers'] += _parse_numbers(annotation, known)
            if is_renumbered:
                annotation['id'] = place
            for step in steps:
                old = get_id(annotation, 'category_id')
                if step.get(old, old) != old:
                    counts['remapped'] += 1
                    annotation['category_id'] = step[old]
            self._correct_box(annotation, sizes.get(get_id(annotation, 'image_id')))
            if options.no_crowds and (annotation.get('iscrowd') or annotation.get('ignore')):
                annotation['iscrowd'] = 0
                annotation.pop('ignore', None)
                counts['no_crowd'] += 1

    def _correct_categories(self) -> List[Dict[Any, Any]]:
        """Correct the categories. Return dicts {old id: new id}, to be applied to the annotations one after another."""
        listed, options = self.record['categories'], self.options
        for category in listed:
            if not isinstance(category.get('name'), str):
                category['name'] = str(category.get('name'))
                self.counts['numbers_to_names'] += 1
        wanted = {raw: new for raw, new in options.label_map.items() if raw != new}
        known = set(map(get_id, listed))
        unknown = {raw: new for raw, new in wanted.items() if new not in known}
        if unknown:
            raise NotCorrected(f'--label-map maps to category ids that the file lacks: {unknown}')
        # A mapped category is removed unless another is mapped to its id.
        listed = [category for category in listed if get_id(category) not in wanted.keys() - {*wanted.values()}]
        steps = [wanted]
        if options.rename or options.classes is not None:
            before = [dict(category) for category in listed]
            first: Dict[str, Any] = {}
            for category in listed:
                category['name'] = options.rename.get(category['name'], category['name'])
                first.setdefault(category['name'], category)
            steps.append({get_id(one): get_id(first[one['name']]) for one in listed if one is not first[one['name']]})
            unused = max([0, *(number for number in map(get_id, listed) if isinstance(number, int))])
            listed = list(first.values())
            if options.classes is not None:
                added = [name for name in options.classes if name not in first]
                first.update({name: {'id': unused + n, 'name': name} for n, name in enumerate(added, 1)})
                listed = [dict(first[name]) for name in options.classes]
            self.counts['categories_changed'] += listed != before
        if options.renumber is not None:
            steps.append({get_id(category): place for place, category in enumerate(listed, options.renumber)})
            for category in listed:
                category['id'] = steps[-1][get_id(category)]
        self.record['categories'] = listed
        return steps

    def _correct_box(self, annotation: Record, size: Optional[Tuple[float, float]]) -> None:
        """Add a missing box around the polygons of an annotation; convert its box from the format ``options.boxes``."""
        form, polygons = self.options.boxes, annotation.get('segmentation')
        if annotation.get('bbox') is None and are_polygons(polygons):
            points: List[Any] = [part for polygon in polygons or () for part in polygon]
            if len(points) > 1:
                xs, ys = points[::2], points[1::2]
                box = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
                annotation['bbox'] = [shorten_number(float(part)) for part in box]
                self.counts['outlined'] += 1
        found = parse_corners(annotation.get('bbox')) if form not in ('', 'sizes') else None
        if found is not None and (form != 'fractions' or size is not None):
            new = [shorten_number(float(round(part, 4))) for part in BOX_WRITERS[form](*found, *(size or ()))]
            self.counts['boxes_converted'] += 1
            annotation['bbox'] = new
            if not annotation.get('segmentation'):
                annotation['area'] = new[2] * new[3]

    def select_images(self) -> None:
        """Correct file names to those on disk, and leave out images that are missing or that a loader cannot use."""
        images, folder = self.record['images'], self.options.images
        if folder is not None:
            try:
                on_disk = {name.lower(): name for name in os.listdir(folder)}
            except OSError as error:
                raise NotCorrected(f'--images {folder} cannot be read: {error.strerror}') from error
            images = [image for image in images if self._find_on_disk(image, folder, on_disk)]
        usable = [image for image in images if get_size(image) is not None and _is_named(image)]
        if images and not usable:
            raise NotCorrected('no image has a file_name, a width and a height above 0: add them first')
        self.counts['image_unusable'] += len(images) - len(usable)
        self.record['images'] = usable

    def _find_on_disk(self, image: Record, folder: str, on_disk: Dict[str, str]) -> bool:
        name = str(image.get('file_name') or '')
        if os.path.isfile(find_inside(folder, name)):
            return True
        # The name is from another machine: it may differ in folders, separators and case.
        found = on_disk.get(name.replace('\\', '/').rpartition('/')[2].lower())
        self.counts['image_missing' if found is None else 'image_renamed'] += 1
        if found is None:
            return False
        image['file_name'] = found
        return True

    def select_annotations(self) -> List[str]:
        """Clamp boxes, and drop annotations that cannot be trained on. Return the invalid category ids of these."""
        record, options, counts = self.record, self.options, self.counts
        sizes = {image['id']: get_size(image) for image in record['images']}
        listed = [annotation for annotation in record['annotations'] if get_id(annotation, 'image_id') in sizes]
        counts['image_not_listed'] += len(record['annotations']) - len(listed)
        faults = np.zeros(len(listed), np.int8)
        if not options.keep_boxes:
            faults = _clamp_into_images(listed, [sizes[annotation['image_id']] for annotation in listed], counts)
        place_of = {category['id']: place for place, category in enumerate(record['categories'])}
        places = np.array([place_of.get(get_id(annotation, 'category_id'), -1) for annotation in listed], np.int64)
        crowds = np.array([bool(annotation.get('iscrowd')) for annotation in listed], bool)
        known = min(options.num_classes or len(record['categories']), len(record['categories'])) or 1
        corrected = InstanceRule(known, 'drop').sanitize(places, crowds & (places >= 0), faults)
        counts.update(corrected.tally.reasons)
        dropped = np.zeros(len(listed), bool) if corrected.dropped is None else corrected.dropped
        kept = [annotation for annotation, drop in zip(listed, dropped) if not drop]
        if options.drop_empty:
            held = {annotation['image_id'] for annotation in kept if not annotation.get('iscrowd')}
            counts['image_empty'] += sum(image['id'] not in held for image in record['images'])
            record['images'] = [image for image in record['images'] if image['id'] in held]
            kept = [annotation for annotation in kept if annotation['image_id'] in held]
        record['annotations'] = kept
        return [str(listed[place].get('category_id')) for place in np.flatnonzero(dropped & (faults == 0)).tolist()]


def _is_named(image: Record) -> bool:
    """Return True if an image has a ``file_name`` or ``coco_url`` that is a string."""
    names = [image[key] for key in ('file_name', 'coco_url') if image.get(key) is not None]
    return any(names) and all(isinstance(name, str) for name in names)


def _clamp_into_images(annotations: List[Record], sizes: Sequence[Any], counts: Counter) -> np.ndarray:
    """Clamp boxes into their images, and set missing areas. Return the fault code of each box, int8 (N,)."""
    boxes = np.array([parse_corners(one.get('bbox')) or (np.nan,) * 4 for one in annotations], float).reshape(-1, 4)
    extents = np.array(sizes, float).reshape(-1, 2)
    with np.errstate(over='ignore'):  # a sum beyond the largest number is not a fault: it is clamped
        corners = np.concatenate([boxes[:, :2], (boxes[:, :2] + boxes[:, 2:]).clip(-_LARGEST, _LARGEST)], axis=1)
    faults = find_corner_faults(corners, extents[:, ::-1])
    inside = corners.clip(0, np.tile(extents, 2))
    for place in np.flatnonzero(faults == 0).tolist():
        annotation, is_new = annotations[place], bool((inside[place] != corners[place]).any())
        if is_new:
            counts['clipped'] += 1
            left, top, right, bottom = inside[place].tolist()
            annotation['bbox'] = list(map(shorten_number, (left, top, right - left, bottom - top)))
        area = annotation.get('area')
        known = None if isinstance(area, str) else number(area)
        has_area = known is not None and known > 0
        if not has_area or (is_new and not annotation.get('segmentation')):
            counts['area_added'] += not has_area
            annotation['area'] = annotation['bbox'][2] * annotation['bbox'][3]
    return faults


def _parse_numbers(annotation: Record, known: Dict[str, Set[Any]]) -> bool:
    """Convert numbers stored as strings (an id ``"1"`` does not equal 1). Return True if a number was converted."""
    new: Record = {}
    for key, ids in known.items():
        value = annotation.get(key)
        whole = number(value) if isinstance(value, str) and value not in ids else None
        if whole is not None and whole in ids:
            new[key] = int(whole)
    boxed = parse_corners(annotation.get('bbox'))
    if boxed is not None and any(isinstance(part, str) for part in annotation['bbox']):
        new['bbox'] = list(map(shorten_number, boxed))
    annotation.update(new)
    return bool(new)


def get_size(image: Record) -> Optional[Tuple[float, float]]:
    """Return width and height of an image record, or ``None`` unless both are positive numbers of pixels."""
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
    """Return the id in a record under the key ``name``, or ``None`` if the id is missing or has a wrong type."""
    value = entry.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # equal to the float, and the same key
    return value if isinstance(value, (int, str)) else None
