"""Mends a COCO or LVIS JSON: annotations with an invalid category, box or image."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Dict, List, Tuple

import numpy as np

from mmguard.fix.boxes import clamped, fault_of, numbers
from mmguard.fix.maps import Mended
from mmguard.fix.options import FixOptions, NotMended
from mmguard.instances import BOX_REASONS, InstanceRule

_INF = float('inf')


def mend_coco(data: bytes, options: FixOptions) -> Mended:
    """Clamps boxes into their images, then leaves out annotations that no training can use.

    Args:
        data (bytes): The file.
        options (FixOptions): ``label_map`` maps category ids; categories after the first ``num_classes`` are invalid.

    Raises:
        NotMended: No COCO JSON.
    """
    record = _read(data)
    categories = [category['id'] for category in record['categories']]
    place_of = {category: place for place, category in enumerate(categories)}
    image_of = {image['id']: image for image in record['images']}
    wrong = {raw: new for raw, new in options.label_map.items() if new not in place_of}
    if wrong:
        raise NotMended(f'--label-map leads to category ids that the file does not have: {wrong}')
    known = min(options.num_classes or len(categories), len(categories)) or 1
    counts: Counter = Counter()
    values: Counter = Counter()
    listed: List[Dict[str, Any]] = []
    for annotation in record['annotations']:
        changed = _remapped(annotation, options, counts, values)
        if _key(changed, 'image_id') not in image_of:
            counts['image_not_listed'] += 1
            continue
        listed.append(_in_image(changed, image_of[changed['image_id']], counts))
    mended = InstanceRule(known, 'drop').mend(
        np.array([place_of.get(_key(annotation, 'category_id'), -1) for annotation in listed], dtype=np.int64),
        np.array([bool(annotation.get('iscrowd')) for annotation in listed], dtype=bool)
        & np.array([_key(annotation, 'category_id') in place_of for annotation in listed], dtype=bool),
        np.array([_fault(a, image_of[a['image_id']]) for a in listed], dtype=np.int64),
    )
    counts.update(mended.tally.reasons)
    kept = listed
    if mended.dropped is not None:
        kept = [annotation for annotation, drop in zip(listed, mended.dropped) if not drop]
        for annotation, drop, fault in zip(
            listed, mended.dropped, [_fault(a, image_of[a['image_id']]) for a in listed]
        ):
            if drop and not fault:
                values[str(annotation.get('category_id'))] += 1
    if not counts:
        return Mended(data, '.json', [], {}, {})
    text = json.dumps({**record, 'annotations': kept}, ensure_ascii=False)
    return Mended(text.encode(), '.json', _words(counts), dict(values), dict(counts))


def _read(data: bytes) -> Dict[str, Any]:
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotMended(f'unreadable: {type(error).__name__}: {error}') from error
    for key in ('images', 'annotations', 'categories'):
        entries = record.get(key) if isinstance(record, dict) else None
        is_list = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
        if not is_list or (key != 'annotations' and any(_key(entry, 'id') is None for entry in entries or [])):
            raise NotMended(f'no COCO JSON: `{key}` is not a list of objects with an id')
    return record


def _key(entry: Dict[str, Any], name: str) -> Any:
    """An id; ``None`` where there is none, or something that cannot be one."""
    value = entry.get(name)
    return value if isinstance(value, (int, str)) else None


def _remapped(annotation: Dict[str, Any], options: FixOptions, counts: Counter, values: Counter) -> Dict[str, Any]:
    raw = _key(annotation, 'category_id')
    if raw not in options.label_map or options.label_map[raw] == raw:
        return annotation
    counts['remapped'] += 1
    values[str(raw)] += 1
    return {**annotation, 'category_id': options.label_map[raw]}


def _size(image: Dict[str, Any]) -> Tuple[float, float]:
    """Width and height; infinite where the file does not say."""
    found = (image.get('width'), image.get('height'))
    width, height = (float(v) if isinstance(v, (int, float)) and v > 0 else _INF for v in found)
    return width, height


def _corners(annotation: Dict[str, Any]) -> Any:
    box = numbers(annotation.get('bbox'))
    return None if box is None else (box[0], box[1], box[0] + box[2], box[1] + box[3])


def _fault(annotation: Dict[str, Any], image: Dict[str, Any]) -> int:
    return fault_of(_corners(annotation), *_size(image))


def _in_image(annotation: Dict[str, Any], image: Dict[str, Any], counts: Counter) -> Dict[str, Any]:
    corners, size = _corners(annotation), _size(image)
    if corners is None or fault_of(corners, *size):
        return annotation
    if 'area' not in annotation:  # mmdet reads it
        counts['area_added'] += 1
        annotation = {**annotation, 'area': annotation['bbox'][2] * annotation['bbox'][3]}
    inside = clamped(corners, *size)
    if inside == corners:
        return annotation
    counts['clipped'] += 1
    left, top, right, bottom = inside
    box = [left, top, right - left, bottom - top]
    changed = {**annotation, 'bbox': [int(v) if v == int(v) else v for v in box]}
    if not annotation.get('segmentation'):
        changed['area'] = changed['bbox'][2] * changed['bbox'][3]
    return changed


def _words(counts: Counter) -> List[str]:
    said = {
        'label': 'annotations of an unknown category dropped',
        'image_not_listed': 'annotations of unlisted images dropped',
        'remapped': 'annotations remapped',
        'area_added': 'areas added',
        'clipped': 'boxes clamped into their image',
    }
    said.update({reason: f'annotations dropped ({reason})' for reason in BOX_REASONS if reason})
    return [f'{count:,} {said[key]}' for key, count in sorted(counts.items())]
