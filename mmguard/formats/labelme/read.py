"""Scan of Labelme files: a folder with one JSON per image."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.files.inside import find_inside, resolve_inside
from mmguard.files.regular import open_regular
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.formats.disk import missing_files, other_sizes
from mmguard.formats.faults import Faults
from mmguard.formats.files import FILES
from mmguard.formats.labelme.records import (
    NO_AREA,
    NO_CORNERS,
    Shape,
    ShapeFile,
    is_of_others,
    read_labelme,
)
from mmguard.formats.listings import is_gray, is_image_name, walk
from mmguard.formats.maps.forms import read_shown_size
from mmguard.formats.table import EDGE, EXAMPLES, UNLISTED, Table, facts_of, table_of_names

#: Names that Labelme's own converters do not treat as classes.
NO_CLASS = ('__ignore__', '_background_')
#: Largest part of a circle that may be outside of the image.
_SLACK = 0.5


class _Read(NamedTuple):
    """A file, and the objects of its shapes."""

    file: ShapeFile
    objects: List[Shape]


def labels_of(files: Sequence[ShapeFile]) -> List[str]:
    """Return the class names of all objects in alphabetical order."""
    return sorted({shape.label for file in files for shape in _objects(file.shapes)})


def facts_of_shapes(
    files: Sequence[ShapeFile],
    target: str,
    names: List[str],
    faults: Faults,
    num_classes: Optional[int] = None,
    counted: bool = False,
    images: Optional[str] = None,
    within: str = '',
) -> LabelFacts:
    """Count objects and their faults; images are looked up if their folder is given.

    Returns:
        LabelFacts: ``kind='instances'``.
    """
    read = [_Read(file, _objects(file.shapes)) for file in files]
    found = Counter(shape.label for one in read for shape in one.objects)
    annotations = AnnotationFacts(format='labelme', labelled_by='class list', names_from='', sources=[target])
    annotations.classes_counted = num_classes is None and counted
    table = _table(read, names, sorted(set(found) | set(names)), annotations)
    annotations.categories = dict(enumerate(names))
    listed = {*names, *NO_CLASS}
    annotations.left_out_names = {name: count for name, count in sorted(found.items()) if name not in listed}
    unlisted = [one.file.name for one in read if any(shape.label not in listed for shape in one.objects)]
    annotations.left_out_files = unlisted[:EXAMPLES]
    paths = [file.image for file in files]
    annotations.duplicate_files = [path for path, count in Counter(paths).items() if path and count > 1][:EXAMPLES]
    if images is not None:
        needed = [file.image for file in files if file.image and not file.has_data]
        annotations.missing, annotations.missing_files = missing_files(images, needed, faults, within=within)
        annotations.sizes_compared, annotations.size_mismatches = other_sizes(images, paths, table.sizes, within=within)
        folder = images
        table.path_of = lambda place: find_inside(folder, paths[place], within) if paths[place] else ''
    facts = facts_of(table, max(len(names), 1) if num_classes is None else num_classes, names, annotations)
    # Coordinates are pixels in Labelme's order: only the image can be turned.
    annotations.inside_as = {way: n for way, n in annotations.inside_as.items() if way == 'swapped'}
    annotations.inside_unit = 0
    # A file saved without a shape is an intentionally empty image.
    annotations.images_without_target -= sum(not file.shapes for file in files)
    annotations.unreadable = faults.to_dict()
    return facts


def _objects(shapes: Sequence[Shape]) -> List[Shape]:
    """Merge shapes of one label and group into objects; keypoints of a group that has an area belong to that area."""
    areas = {shape.group for shape in shapes if shape.group is not None and not shape.fault}
    found: Dict[Tuple[object, object], Shape] = {}
    for shape in shapes:
        if shape.fault == NO_AREA and shape.group in areas:
            continue
        grouped = shape.group is not None and not shape.fault
        key = (shape.label, shape.group) if grouped else (None, shape.place)
        if key in found:
            (a, b, c, d), (left, top, right, bottom) = found[key].corners, shape.corners
            found[key] = found[key]._replace(corners=(min(a, left), min(b, top), max(c, right), max(d, bottom)))
        else:
            found[key] = shape
    return list(found.values())


def _table(
    read: Sequence[_Read], names: Sequence[str], categories: Sequence[str], annotations: AnnotationFacts
) -> Table:
    rows: List[Tuple[int, str, Tuple[float, ...]]] = []
    for number, one in enumerate(read):
        for shape in one.objects:
            rows.append((number, shape.label, _clip_shape(shape, one.file.size)))
            if shape.fault:
                annotations.mask_faults[shape.fault] = annotations.mask_faults.get(shape.fault, 0) + 1
                examples = annotations.mask_examples.setdefault(shape.fault, [])
                if len(examples) < EXAMPLES:
                    examples.append(f'{one.file.name}: shapes[{shape.place}], {shape.label!r}')
    sizes = [one.file.size for one in read]
    table = table_of_names([one.file.name for one in read], sizes, rows, names, categories)
    table.ignored = np.array([name in NO_CLASS for _, name, _ in rows], bool)
    table.left_out[UNLISTED] &= ~table.ignored
    table.judged &= table.boxed
    return table


def _clip_shape(shape: Shape, size: Optional[Tuple[float, float]]) -> Tuple[float, ...]:
    """Return the corners of a shape, clipped if at most a pixel, or half of a circle, is outside of the image."""
    if shape.corners == NO_CORNERS or size is None:
        return shape.corners
    height, width = size
    left, top, right, bottom = shape.corners
    slack = max(right - left, bottom - top) * _SLACK if shape.kind == 'circle' else EDGE
    left, top = (0.0 if -slack <= side < 0 else side for side in (left, top))
    right = width if width < right <= width + slack else right
    bottom = height if height < bottom <= height + slack else bottom
    return left, top, right, bottom


#: Class list files, in the folder or its parent.
LISTS = ('labels.txt', 'classes.txt')
#: Number of files of a folder to look at to identify it, and number of JSON files among them to open.
_FILES, _OPENED = 2000, 20
#: A folder with more than this many label maps per JSON is a folder of label maps.
_STRAY = 10
#: Number of bytes that identify a larger JSON.
_HEAD = 1 << 16
#: Maximum size of a class list in bytes.
_LARGEST_LIST = 8 << 20


def is_labelme(target: str) -> bool:
    """Return True if a target is a Labelme JSON, or a folder in which at least half of the JSON files are."""
    if os.path.isfile(target):
        return target.lower().endswith('.json') and is_labelme_file(target)
    found: List[str] = []
    images: List[str] = []
    seen = 0
    for place, names in walk(target, lambda *_: None):
        seen += len(names)
        found += [os.path.join(place, name) for name in names if name.lower().endswith('.json')]
        images += [os.path.join(place, name) for name in names if is_image_name(name)]
        if seen > _FILES:
            break
    if not found or (_STRAY * len(found) < len(images) and is_gray(images[0])):
        return False  # label maps, with remains of the files they were drawn with
    some = found[:_OPENED]
    return 2 * sum(map(is_labelme_file, some)) >= len(some)


def is_labelme_file(path: str) -> bool:
    """Return True if a JSON is a Labelme file."""
    record = _read_beginning(path)
    return isinstance(record, dict) and isinstance(record.get('shapes'), list)


def is_other_file(path: str) -> bool:
    """Return True if a JSON is valid but not a Labelme file."""
    return is_of_others(_read_beginning(path))


def _read_beginning(path: str) -> Any:
    """Return the content of a JSON, or Labelme's keys in the beginning of a large one; ``None`` if it is damaged."""
    try:
        head = _head(path)
        if len(head) < _HEAD:
            return json.loads(head)
    except (OSError, ValueError, RecursionError):
        return None
    is_object = head.lstrip()[:1] == b'{'
    return {'shapes': []} if is_object and b'"shapes"' in head else {'': 0} if is_object else None


def _head(path: str) -> bytes:
    with FILES.open(path) as file:
        return file.read(_HEAD)


def read_classes(path: str) -> List[str]:
    """Return the names of a class list, one per line."""
    with open_regular(path) as file:
        return [line.strip() for line in file.read(_LARGEST_LIST).decode('utf-8-sig').splitlines() if line.strip()]


def classes_beside(target: str) -> Tuple[str, List[str]]:
    """Return path and names of the class list in a folder or its parent; both empty if not found or unreadable."""
    folder = os.path.abspath(target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target)))
    for place in (folder, os.path.dirname(folder)):
        for name in LISTS:
            path = os.path.join(place, name)
            try:
                names = read_classes(path)
            except (OSError, ValueError):
                continue
            if names:
                return path, names
    return '', []


def scan_labelme(
    target: str,
    num_classes: Optional[int] = None,
    class_names: Optional[Sequence[str]] = None,
    images: Optional[str] = None,
    look: bool = True,
) -> LabelFacts:
    """Read the JSON files of a folder, or a single one. Never raise because of their content.

    Labels are positions in ``class_names``, by default the sorted names that occur; objects with other names are in
    ``annotations.left_out``. Shapes of one label and ``group_id`` are one object, as in Labelme's own converters.
    Images are in ``images``, or found by ``imagePath``.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are JSON files.

    Raises:
        ValueError: Neither a shape nor a fault was found.
    """
    faults = Faults()
    root, images_root = folder_of(target), os.path.abspath(images or folder_of(target))
    read: List[ShapeFile] = []
    for name in list_files(target, faults) if os.path.isdir(target) else [os.path.basename(target)]:
        file = read_labelme(os.path.join(root, name), name, faults)
        if file is not None:
            image = _find_image(name, file.image, images is not None) if file.image else ''
            read.append(_add_size(file._replace(image=image), images_root, name, faults if look else None))
    found = labels_of(read)
    if not found and not faults:
        raise ValueError(f'nothing was read: {len(read):,} Labelme files have no shape')
    given = sorted(found) if class_names is None else class_names
    classes = list(dict.fromkeys(name for name in given if name not in NO_CLASS))
    looked_in = images_root if look else None
    within = around(images_root)
    return facts_of_shapes(read, target, classes, faults, num_classes, class_names is None, looked_in, within)


def folder_of(path: str) -> str:
    """Return a folder itself, or the folder of a file."""
    return path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))


def list_files(root: str, faults: Faults, ending: str = '.json') -> List[str]:
    """Return the files with an extension in a folder and its subfolders, relative to the folder."""
    names = []

    def add_fault(folder: str, error: OSError) -> None:
        faults.add(f'the folder cannot be read: {error.strerror or error}', folder)

    for folder, files in walk(root, add_fault):
        names += [
            os.path.relpath(os.path.join(folder, name), root)
            for name in files
            if name.lower().endswith(ending) and not name.startswith('.')
        ]
    return sorted(names)


def _find_image(name: str, image: str, in_folder: bool) -> str:
    """Return the image of a file, relative to the root or to the folder given by the user."""
    if in_folder:
        return os.path.basename(image.replace('\\', '/'))
    return os.path.normpath(os.path.join(os.path.dirname(name), image))


def around(root: str) -> str:
    """Return the folder that may contain both images and labels: images of labels/train are in ../../images/train."""
    return os.path.dirname(os.path.dirname(root))


def _add_size(file: ShapeFile, root: str, name: str, faults: Optional[Faults]) -> ShapeFile:
    """Return a file with the size read from its image if missing."""
    size = file.size
    if size is None and faults is not None:
        from PIL import Image

        try:
            path = resolve_inside(root, file.image, around(root))
            if file.has_data or os.path.exists(path):
                with open_regular(path) as image, Image.open(image) as opened:
                    height, width = read_shown_size(opened)
                size = float(height), float(width)
        except Exception as error:  # decoders raise many types for a damaged file
            faults.add('cannot be read: the image, and the file has no size', f'{name}: {str(error)[:120]}')
    return file._replace(size=size)
