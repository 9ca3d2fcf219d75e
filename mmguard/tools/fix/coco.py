"""Corrects a COCO or LVIS JSON: annotations with an invalid category, box or image."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from mmguard.labels.instances import BOX_REASONS, InstanceRule
from mmguard.text.words import counted
from mmguard.tools.fix.boxes import Corners, clamped, fault_of, number, numbers, shortest
from mmguard.tools.fix.coco_changes import id_of, size_of, with_changes
from mmguard.tools.fix.label_files import Corrected
from mmguard.tools.fix.options import FixOptions, NotCorrected


def correct_coco(data: bytes, options: FixOptions) -> Corrected:
    """Clamps boxes into their images, then leaves out annotations that no training can use.

    Args:
        data (bytes): The file.
        options (FixOptions): ``label_map`` maps category ids; categories after the first ``num_classes`` are invalid.

    Raises:
        NotCorrected: No COCO JSON, or one of which nothing would be left.
    """
    original = _read(data)
    counts: Counter = Counter()
    record = with_changes(original, options, counts)
    values: Counter = Counter(
        str(old.get('category_id'))
        for old, new in zip(original['annotations'], record['annotations'])
        if old.get('category_id') != new.get('category_id')
    )
    categories = [category['id'] for category in record['categories']]
    place_of = {category: place for place, category in enumerate(categories)}
    usable = [image for image in record['images'] if _is_usable(image)]
    if record['images'] and not usable:
        raise NotCorrected('no image has a file_name, and a width and a height above 0: write them first')
    counts['image_unusable'] += len(record['images']) - len(usable)
    record = {**record, 'images': usable}
    sizes = {image['id']: size_of(image) for image in usable}
    known = min(options.num_classes or len(categories), len(categories)) or 1
    listed: List[Dict[str, Any]] = []
    for annotation in record['annotations']:
        size = sizes.get(id_of(annotation, 'image_id'))
        if size is None:
            counts['image_not_listed'] += 1
        else:
            listed.append(_in_image(annotation, size, counts))
    faults = [fault_of(_corners(annotation), *(sizes[annotation['image_id']] or ())) for annotation in listed]
    corrected = InstanceRule(known, 'drop').sanitize(
        np.array([place_of.get(id_of(annotation, 'category_id'), -1) for annotation in listed], dtype=np.int64),
        np.array([bool(annotation.get('iscrowd')) for annotation in listed], dtype=bool)
        & np.array([id_of(annotation, 'category_id') in place_of for annotation in listed], dtype=bool),
        np.array(faults, dtype=np.int64),
    )
    counts.update(corrected.tally.reasons)
    kept = listed
    if corrected.dropped is not None:
        kept = [annotation for annotation, drop in zip(listed, corrected.dropped) if not drop]
        for annotation, drop, fault in zip(listed, corrected.dropped, faults):
            if drop and not fault:
                values[str(annotation.get('category_id'))] += 1
    if options.drop_empty:
        held = {annotation['image_id'] for annotation in kept if not annotation.get('iscrowd')}
        counts['image_empty'] += sum(image['id'] not in held for image in record['images'])
        record = {**record, 'images': [image for image in record['images'] if image['id'] in held]}
        kept = [annotation for annotation in kept if annotation['image_id'] in held]
    counts = +counts
    if not counts:
        return Corrected(data, '.json', [], {}, {})
    if original['annotations'] and not kept:
        raise NotCorrected(f'no annotation would be left: {"; ".join(_words(counts))}')
    text = json.dumps({**record, 'annotations': kept}, ensure_ascii=False)
    # JSON can hold a lone surrogate as an escape alone.
    return Corrected(text.encode(errors='backslashreplace'), '.json', _words(counts), dict(values), dict(counts))


def _read(data: bytes) -> Dict[str, Any]:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotCorrected(f'unreadable: {type(error).__name__}: {error}') from error
    for key in ('images', 'annotations', 'categories'):
        entries = record.get(key) if isinstance(record, dict) else None
        is_list = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
        if not is_list or (key != 'annotations' and any(id_of(entry) is None for entry in entries or [])):
            raise NotCorrected(f'no COCO JSON: `{key}` is not a list of objects with an id')
    if any('segments_info' in annotation for annotation in record['annotations']):
        raise NotCorrected('COCO panoptic: its annotations are segments of a PNG, not boxes')
    return record


def _is_usable(image: Dict[str, Any]) -> bool:
    """Whether a loader can do anything with an image: find it, and say what lies inside of it."""
    names = [image[key] for key in ('file_name', 'coco_url') if image.get(key) is not None]
    return size_of(image) is not None and any(names) and all(isinstance(name, str) for name in names)


def _corners(annotation: Dict[str, Any]) -> Optional[Corners]:
    box = numbers(annotation.get('bbox'))
    return None if box is None else (box[0], box[1], box[0] + box[2], box[1] + box[3])


def _in_image(annotation: Dict[str, Any], size: Tuple[float, float], counts: Counter) -> Dict[str, Any]:
    """An annotation whose box ends with the image, and that has an area: mmdet reads it."""
    corners = _corners(annotation)
    if corners is None or fault_of(corners, *size):
        return annotation
    inside = clamped(corners, *size)
    is_new = inside != corners
    if is_new:
        counts['clipped'] += 1
        left, top, right, bottom = inside
        box = [shortest(float(side)) for side in (left, top, right - left, bottom - top)]
        annotation = {**annotation, 'bbox': box}
    area = annotation.get('area')
    known = None if isinstance(area, str) else number(area)
    has_area = known is not None and known > 0
    if not has_area or (is_new and not annotation.get('segmentation')):
        counts['area_added'] += not has_area
        annotation = {**annotation, 'area': annotation['bbox'][2] * annotation['bbox'][3]}
    return annotation


def _words(counts: Counter) -> List[str]:
    said = {
        'label': ('annotation', 'of an unknown category dropped'),
        'image_not_listed': ('annotation', 'of unlisted images dropped'),
        'remapped': ('annotation', 'remapped'),
        'area_added': ('area', 'written'),
        'texts_to_numbers': ('record', 'with texts in place of numbers'),
        'numbers_to_names': ('name', 'of categories written as text'),
        'ids_renumbered': ('annotation', 'numbered anew'),
        'categories_changed': ('list', 'of categories written anew'),
        'outlined': ('box', 'added around polygons'),
        'boxes_converted': ('box', 'converted'),
        'no_crowd': ('annotation', 'made an object in place of a crowd'),
        'image_unusable': ('image', 'without a usable file_name, width or height left out'),
        'image_empty': ('image', 'without an object left out'),
        'image_renamed': ('image', 'named as on disk'),
        'image_missing': ('image', 'not on disk left out'),
        'clipped': ('box', 'clamped into the image'),
    }
    said.update({reason: ('annotation', f'dropped ({reason})') for reason in BOX_REASONS if reason})
    return [f'{counted(count, said[key][0])} {said[key][1]}' for key, count in sorted(counts.items())]
