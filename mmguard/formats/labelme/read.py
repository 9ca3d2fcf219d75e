"""Scan of Labelme files: a folder with one JSON per image."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.files.containment import find_inside, resolve_inside
from mmguard.files.images import open_image
from mmguard.files.regular import open_regular
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.formats.correction import LabelFiles, list_names_below
from mmguard.formats.faults import Faults
from mmguard.formats.files import (
    FILES,
    find_missing_files,
    find_size_mismatches,
    is_gray,
    is_image_name,
    read_shown_size,
    walk,
)
from mmguard.formats.format import Format, LabelSet, Sets
from mmguard.formats.labelme.records import (
    NAMES_OF_NO_CLASS,
    NO_AREA_FAULT,
    NO_CORNERS,
    Shape,
    ShapeFile,
    is_of_others,
    read_labelme,
)
from mmguard.formats.labelme.write import correct_labelme
from mmguard.formats.options import FixOptions, ScanOptions
from mmguard.formats.table import EDGE, EXAMPLES, UNLISTED_REASON, Table, facts_of, table_of_names

_RECORD_ADVICE = 'Correct the places listed: every shape needs a label, and imagePath must be relative to the JSON.'


class Labelme(Format):
    """A folder of Labelme JSON files, or a single file."""

    name = 'labelme'
    endings = ('.json',)

    def detect(self, target: str) -> bool:
        if os.path.isfile(target):
            return _is_labelme_file(target)
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
        return 2 * sum(map(_is_labelme_file, some)) >= len(some)

    def sets(self, target: str, options: ScanOptions) -> Sets:
        path = '' if options.classes else find_class_list(target)[0]
        return Sets([LabelSet(target, lambda: self.read(target, options), [f'classes: {path}'] if path else [])])

    def read(self, target: str, options: ScanOptions) -> LabelFacts:
        names = list(options.classes) if options.classes else find_class_list(target)[1]
        return scan_labelme(target, options.num_classes, names or None, options.images)

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        root = get_folder(target)
        below = sorted(list_names_below(target)) if os.path.isdir(target) else [os.path.basename(target)]
        names = [name for name in below if _is_copied(root, name)]
        return LabelFiles(
            [(os.path.join(root, name), name) for name in names],
            lambda data, _: correct_labelme(data, options),
            frozenset(name for name in names if not name.lower().endswith('.json')),
            lambda path: scan_labelme(path, read_images=False),
        )


def _is_copied(root: str, name: str) -> bool:
    """Return True for a Labelme file, an image or a list of classes; other JSON belongs to another program."""
    if name.lower().endswith('.json'):
        return not is_of_others(_read_beginning(os.path.join(root, name)))
    return is_image_name(os.path.basename(name)) or os.path.basename(name) in LISTS


#: Largest part of a circle that may be outside of the image.
_SLACK = 0.5


def _merge_objects(shapes: Sequence[Shape]) -> List[Shape]:
    """Merge shapes of one label and group into objects; keypoints of a group that has an area belong to that area."""
    areas = {shape.group for shape in shapes if shape.group is not None and not shape.fault}
    found: Dict[Tuple[object, object], Shape] = {}
    for shape in shapes:
        if shape.fault == NO_AREA_FAULT and shape.group in areas:
            continue
        grouped = shape.group is not None and not shape.fault
        key = (shape.label, shape.group) if grouped else (None, shape.place)
        if key in found:
            (a, b, c, d), (left, top, right, bottom) = found[key].corners, shape.corners
            found[key] = found[key]._replace(corners=(min(a, left), min(b, top), max(c, right), max(d, bottom)))
        else:
            found[key] = shape
    return list(found.values())


def _build_table(
    files: Sequence[ShapeFile],
    objects: Sequence[Sequence[Shape]],
    names: Sequence[str],
    categories: Sequence[str],
    annotations: AnnotationFacts,
) -> Table:
    rows: List[Tuple[int, str, Tuple[float, ...]]] = []
    for number, file in enumerate(files):
        for shape in objects[number]:
            rows.append((number, shape.label, _clip_shape(shape, file.size)))
            if shape.fault:
                annotations.mask_faults[shape.fault] = annotations.mask_faults.get(shape.fault, 0) + 1
                examples = annotations.mask_examples.setdefault(shape.fault, [])
                if len(examples) < EXAMPLES:
                    examples.append(f'{file.name}: shapes[{shape.place}], {shape.label!r}')
    sizes = [file.size for file in files]
    table = table_of_names([file.name for file in files], sizes, rows, names, categories)
    table.ignored = np.array([name in NAMES_OF_NO_CLASS for _, name, _ in rows], bool)
    table.left_out[UNLISTED_REASON] &= ~table.ignored
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


def _is_labelme_file(path: str) -> bool:
    record = _read_beginning(path)
    return isinstance(record, dict) and isinstance(record.get('shapes'), list)


def _read_beginning(path: str) -> Any:
    """Return the content of a JSON, or Labelme's keys in the beginning of a large one; ``None`` if it is damaged."""
    try:
        with FILES.open(path) as file:
            head = file.read(_HEAD)
        if len(head) < _HEAD:
            return json.loads(head)
    except (OSError, ValueError, RecursionError):
        return None
    is_object = head.lstrip()[:1] == b'{'
    return {'shapes': []} if is_object and b'"shapes"' in head else {'': 0} if is_object else None


def find_class_list(target: str) -> Tuple[str, List[str]]:
    """Return path and names of the class list in a folder or its parent; both empty if not found or unreadable."""
    folder = os.path.abspath(get_folder(target))
    for place in (folder, os.path.dirname(folder)):
        for name in LISTS:
            path = os.path.join(place, name)
            try:
                with open_regular(path) as file:
                    lines = file.read(_LARGEST_LIST).decode('utf-8-sig').splitlines()
            except (OSError, ValueError):
                continue
            names = [line.strip() for line in lines if line.strip()]
            if names:
                return path, names
    return '', []


def scan_labelme(
    target: str,
    num_classes: Optional[int] = None,
    class_names: Optional[Sequence[str]] = None,
    images: Optional[str] = None,
    read_images: bool = True,
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
    root, images_root = get_folder(target), os.path.abspath(images or get_folder(target))
    read: List[ShapeFile] = []
    for name in list_files(target, faults) if os.path.isdir(target) else [os.path.basename(target)]:
        file = read_labelme(os.path.join(root, name), name, faults)
        if file is not None:
            image = _find_image(name, file.image, images is not None) if file.image else ''
            read.append(_add_size(file._replace(image=image), images_root, name, faults if read_images else None))
    objects = [_merge_objects(file.shapes) for file in read]
    found = Counter(shape.label for of_file in objects for shape in of_file)
    if not found and not faults:
        raise ValueError(f'nothing was read: {len(read):,} Labelme files have no shape')
    given = sorted(found) if class_names is None else class_names
    names = list(dict.fromkeys(name for name in given if name not in NAMES_OF_NO_CLASS))
    annotations = AnnotationFacts(format='labelme', labelled_by='class list', names_from='', sources=[target])
    annotations.record_advice = _RECORD_ADVICE
    annotations.classes_counted = num_classes is None and class_names is None
    table = _build_table(read, objects, names, sorted(set(found) | set(names)), annotations)
    annotations.categories = dict(enumerate(names))
    listed = {*names, *NAMES_OF_NO_CLASS}
    annotations.left_out_names = {name: count for name, count in sorted(found.items()) if name not in listed}
    unlisted = [file.name for file, of_file in zip(read, objects) if any(one.label not in listed for one in of_file)]
    annotations.left_out_files = unlisted[:EXAMPLES]
    paths = [file.image for file in read]
    annotations.duplicate_files = [path for path, count in Counter(paths).items() if path and count > 1][:EXAMPLES]
    if read_images:
        needed, within = (
            [file.image for file in read if file.image and not file.has_data],
            find_common_folder(images_root),
        )
        annotations.missing, annotations.missing_files = find_missing_files(images_root, needed, faults, within)
        annotations.sizes_compared, annotations.size_mismatches = find_size_mismatches(
            images_root, paths, table.sizes, within
        )
        table.path_of = lambda place: find_inside(images_root, paths[place], within) if paths[place] else ''
    facts = facts_of(table, num_classes, names, annotations)
    # Labelme's coordinates always have the same form, so only width and height of the image can be swapped.
    annotations.inside_as = {way: n for way, n in annotations.inside_as.items() if way == 'swapped'}
    annotations.inside_unit = 0
    # A file saved without a shape is an intentionally empty image.
    annotations.images_without_target -= sum(not file.shapes for file in read)
    annotations.unreadable = faults.to_dict()
    return facts


def get_folder(path: str) -> str:
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


def find_common_folder(root: str) -> str:
    """Return the folder that may contain both images and labels: images of labels/train are in ../../images/train."""
    return os.path.dirname(os.path.dirname(root))


def _add_size(file: ShapeFile, root: str, name: str, faults: Optional[Faults]) -> ShapeFile:
    """Return a file with the size read from its image if missing."""
    size = file.size
    if size is None and faults is not None:
        try:
            path = resolve_inside(root, file.image, find_common_folder(root))
            if file.has_data or os.path.exists(path):
                with open_regular(path) as image, open_image(image) as opened:
                    height, width = read_shown_size(opened)
                size = float(height), float(width)
        except Exception as error:  # decoders raise many types for a damaged file
            faults.add(
                'cannot be used: the image cannot be read, and the JSON does not state its size',
                f'{name}: {str(error)[:120]}',
            )
    return file._replace(size=size)
