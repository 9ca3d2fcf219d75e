"""What a COCO file is to say otherwise before its annotations are judged: each a function of the file to the file."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from mmguard.files.inside import find_inside
from mmguard.tools.fix.boxes import number, numbers, shortest
from mmguard.tools.fix.options import FixOptions, NotCorrected
from mmguard.tools.scan.annotations.table import LARGEST_SIDE

Record = Dict[str, Any]

_SIDES = ('width', 'height')

#: How a box may be written -> x, y, width, height of it, in an image of some width and height.
WRITTEN: Dict[str, Callable[..., Tuple[float, ...]]] = {
    'sizes': lambda a, b, c, d, *_: (a, b, c, d),
    'corners': lambda a, b, c, d, *_: (a, b, c - a, d - b),
    'fractions': lambda a, b, c, d, width, height: (a * width, b * height, c * width, d * height),
}


def with_changes(record: Record, options: FixOptions, counts: Counter) -> Record:
    """A COCO file with what the options ask for.

    Raises:
        NotCorrected: It cannot be done.
    """
    for change in (_numbers, _ids, _mapped, _named, _renumbered, _outlined, _boxes, _crowds, _images):
        record = change(record, options, counts)
    return record


def _numbers(record: Record, _: FixOptions, counts: Counter) -> Record:
    """Numbers in place of texts that hold one: an id ``"1"`` is not 1."""
    known = {key: {id_of(entry) for entry in record[key]} for key in ('images', 'categories')}
    changed = []
    for annotation in record['annotations']:
        new = dict(annotation)
        for key, ids in (('image_id', known['images']), ('category_id', known['categories'])):
            value = annotation.get(key)
            whole = _whole(value)
            if isinstance(value, str) and value not in ids and whole in ids:
                new[key] = whole
        boxed = numbers(annotation.get('bbox'))
        if boxed is not None and any(isinstance(part, str) for part in annotation['bbox']):
            new['bbox'] = list(map(shortest, boxed))
        counts['texts_to_numbers'] += new != annotation
        changed.append(new)
    categories = []
    for category in record['categories']:
        is_text = isinstance(category.get('name'), str)
        categories.append(category if is_text else {**category, 'name': str(category.get('name'))})
        counts['numbers_to_names'] += not is_text
    images = []
    for image in record['images']:
        texts = {side: image[side] for side in _SIDES if isinstance(image.get(side), str)}
        found = {side: shortest(size) for side, size in zip(texts, map(number, texts.values())) if size is not None}
        images.append({**image, **found})
        counts['texts_to_numbers'] += bool(found)
    return {**record, 'images': images, 'annotations': changed, 'categories': categories}


def _ids(record: Record, _: FixOptions, counts: Counter) -> Record:
    """Annotations are numbered anew where an id is missing or used twice: nothing refers to them."""
    annotations = record['annotations']
    ids = [id_of(annotation) for annotation in annotations]
    if None not in ids and len(set(ids)) == len(ids):
        return record
    counts['ids_renumbered'] += len(ids)
    return {**record, 'annotations': [{**one, 'id': number} for number, one in enumerate(annotations, 1)]}


def _mapped(record: Record, options: FixOptions, counts: Counter) -> Record:
    """Category ids by the label map. A category that is mapped away, and to which nothing is mapped, goes."""
    wanted = {raw: new for raw, new in options.label_map.items() if raw != new}
    if not wanted:
        return record
    known = {id_of(category) for category in record['categories']}
    unknown = {raw: new for raw, new in wanted.items() if new not in known}
    if unknown:
        raise NotCorrected(f'--label-map leads to category ids that the file does not have: {unknown}')
    gone = set(wanted) - set(wanted.values())
    return {
        **record,
        'annotations': list(_with_categories(record['annotations'], wanted, counts)),
        'categories': [category for category in record['categories'] if id_of(category) not in gone],
    }


def _named(record: Record, options: FixOptions, counts: Counter) -> Record:
    """Categories by their names: renamed, one for each name, in the order that is asked for."""
    if not options.rename and options.classes is None:
        return record
    renamed = [
        {**category, 'name': options.rename.get(category['name'], category['name'])}
        for category in record['categories']
    ]
    first: Dict[str, Any] = {}
    for category in renamed:
        first.setdefault(category['name'], category)
    merged = {id_of(one): id_of(first[one['name']]) for one in renamed if one is not first[one['name']]}
    listed = list(first.values())
    if options.classes is not None:
        unused = max([0, *(number for number in map(id_of, renamed) if isinstance(number, int))])
        added = [name for name in options.classes if name not in first]
        first.update({name: {'id': unused + n, 'name': name} for n, name in enumerate(added, 1)})
        listed = [first[name] for name in options.classes]
    counts['categories_changed'] += listed != record['categories']
    return {
        **record,
        'annotations': list(_with_categories(record['annotations'], merged, counts)),
        'categories': listed,
    }


def _renumbered(record: Record, options: FixOptions, counts: Counter) -> Record:
    if options.renumber is None:
        return record
    ids = {id_of(category): number for number, category in enumerate(record['categories'], options.renumber)}
    return {
        **record,
        'annotations': list(_with_categories(record['annotations'], ids, counts)),
        'categories': [{**category, 'id': ids[id_of(category)]} for category in record['categories']],
    }


def _outlined(record: Record, _: FixOptions, counts: Counter) -> Record:
    """Boxes around polygons where there are no others."""
    changed = []
    for annotation in record['annotations']:
        polygons = annotation.get('segmentation')
        points = [part for polygon in polygons for part in polygon] if are_polygons(polygons) else []
        if annotation.get('bbox') is None and len(points) > 1:
            xs, ys = points[::2], points[1::2]
            box = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
            annotation = {**annotation, 'bbox': [shortest(float(part)) for part in box]}
            counts['outlined'] += 1
        changed.append(annotation)
    return {**record, 'annotations': changed}


def _boxes(record: Record, options: FixOptions, counts: Counter) -> Record:
    if options.boxes in ('', 'sizes'):
        return record
    if options.boxes not in WRITTEN:
        raise NotCorrected(f'--boxes of a COCO JSON is one of {", ".join(WRITTEN)}, got {options.boxes}')
    sizes = {id_of(image): size_of(image) for image in record['images']}
    changed = []
    for annotation in record['annotations']:
        box = numbers(annotation.get('bbox'))
        size = sizes.get(id_of(annotation, 'image_id'))
        if box is None or (options.boxes == 'fractions' and size is None):
            changed.append(annotation)
            continue
        new = [shortest(float(round(part, 4))) for part in WRITTEN[options.boxes](*box, *(size or ()))]
        counts['boxes_converted'] += 1
        one = {**annotation, 'bbox': new}
        if not annotation.get('segmentation'):
            one['area'] = new[2] * new[3]
        changed.append(one)
    return {**record, 'annotations': changed}


def _crowds(record: Record, options: FixOptions, counts: Counter) -> Record:
    """Crowds are objects where that is asked."""
    if not options.no_crowds:
        return record
    changed = []
    for annotation in record['annotations']:
        if annotation.get('iscrowd') or annotation.get('ignore'):
            annotation = {**annotation, 'iscrowd': 0}
            annotation.pop('ignore', None)
            counts['no_crowd'] += 1
        changed.append(annotation)
    return {**record, 'annotations': changed}


def _images(record: Record, options: FixOptions, counts: Counter) -> Record:
    """Entries with the names that images have on disk; without those of images that are not there."""
    if options.images is None:
        return record
    try:
        on_disk = {name.lower(): name for name in os.listdir(options.images)}
    except OSError as error:
        raise NotCorrected(f'--images {options.images} cannot be read: {error.strerror}') from error
    there = []
    for image in record['images']:
        name = str(image.get('file_name') or '')
        if not os.path.isfile(find_inside(options.images, name)):
            # Written on another machine: its folders, its separators, its letters.
            found = on_disk.get(name.replace('\\', '/').rpartition('/')[2].lower())
            counts['image_missing' if found is None else 'image_renamed'] += 1
            if found is None:
                continue
            image = {**image, 'file_name': found}
        there.append(image)
    return {**record, 'images': there}


def _with_categories(annotations: List[Record], ids: Dict[Any, Any], counts: Counter) -> Iterator[Record]:
    for annotation in annotations:
        known = id_of(annotation, 'category_id')
        if ids.get(known, known) == known:
            yield annotation
        else:
            counts['remapped'] += 1
            yield {**annotation, 'category_id': ids[known]}


def size_of(image: Record) -> Optional[Tuple[float, float]]:
    """Width and height; ``None`` where they are not two numbers of pixels above 0."""
    width, height = (None if isinstance(image.get(side), str) else number(image.get(side)) for side in _SIDES)
    if width is None or height is None or min(width, height) <= 0 or max(width, height) > LARGEST_SIDE:
        return None
    return width, height


def are_polygons(outline: Any) -> bool:
    """Whether an outline is a list of lists of numbers."""
    return isinstance(outline, list) and all(
        isinstance(polygon, list)
        and all(isinstance(part, (int, float)) and number(part) is not None for part in polygon)
        for polygon in outline
    )


def id_of(entry: Record, name: str = 'id') -> Any:
    """An id; ``None`` where there is none, or something that cannot be one."""
    value = entry.get(name)
    if isinstance(value, float) and value.is_integer():
        return int(value)  # equal, and the same key
    return value if isinstance(value, (int, str)) else None


def _whole(value: Any) -> Optional[int]:
    found = number(value)
    return None if found is None or not found.is_integer() else int(found)
