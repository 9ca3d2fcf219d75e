"""Labelme: a folder of JSON, one for each image."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.files.inside import resolve_inside
from mmguard.files.regular import open_regular
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.tools.scan.annotations.disk import missing_files, other_sizes
from mmguard.tools.scan.annotations.labelme_json import (
    NO_AREA,
    NO_CORNERS,
    Shape,
    ShapeFile,
    is_of_others,
    read_labelme,
    size_of_data,
)
from mmguard.tools.scan.annotations.table import EDGE, EXAMPLES, UNLISTED, Table, facts_of, table_of_names
from mmguard.tools.scan.faults import Faults
from mmguard.tools.scan.forms import shown_size
from mmguard.tools.scan.sources.folders import is_gray, is_image_name, walk
from mmguard.tools.storage.files import FILES

#: Names that Labelme's own converters keep for what is no class.
NO_CLASS = ('__ignore__', '_background_')
#: The part of a circle, at most, that may lie outside of the image.
_SLACK = 0.5


class _Read(NamedTuple):
    """A file, and the objects that its shapes are."""

    file: ShapeFile
    objects: List[Shape]


def labels_of(files: Sequence[ShapeFile]) -> List[str]:
    """The names of objects, in the order of the alphabet."""
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
    """Count objects, and what is wrong with them; images are looked for where a folder is given.

    Returns:
        LabelFacts: ``kind='instances'``.
    """
    read = [_Read(file, _objects(file.shapes)) for file in files]
    found = Counter(shape.label for one in read for shape in one.objects)
    annotations = AnnotationFacts(format='labelme', labelled_by='class list', sources=[target])
    annotations.classes_counted = num_classes is None and counted
    table = _table(read, names, sorted(set(found) | set(names)), annotations)
    annotations.categories = dict(enumerate(names))
    annotations.unused = [name for name in names if name not in found]
    listed = {*names, *NO_CLASS}
    annotations.left_out_names = {name: count for name, count in sorted(found.items()) if name not in listed}
    paths = [file.image for file in files]
    annotations.duplicate_files = [path for path, count in Counter(paths).items() if path and count > 1][:EXAMPLES]
    if images is not None:
        needed = [file.image for file in files if file.image and not file.data]
        annotations.missing, annotations.missing_files = missing_files(images, needed, faults, within=within)
        annotations.sizes_compared, annotations.size_mismatches = other_sizes(images, paths, table.sizes, within=within)
    facts = facts_of(table, max(len(names), 1) if num_classes is None else num_classes, names, annotations)
    # Numbers are pixels, in the order that Labelme writes: only the image may be turned.
    annotations.inside_as = {way: n for way, n in annotations.inside_as.items() if way == 'swapped'}
    annotations.inside_unit = 0
    # A file that was saved without a shape says that nothing is there.
    annotations.images_without_target -= sum(not file.shapes for file in files)
    annotations.unreadable = faults.to_dict()
    return facts


def _objects(shapes: Sequence[Shape]) -> List[Shape]:
    """Shapes of one label and group as one object; keypoints of a group that has an area belong to that."""
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
            rows.append((number, shape.label, _inside(shape, one.file.size)))
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


def _inside(shape: Shape, size: Optional[Tuple[float, float]]) -> Tuple[float, ...]:
    """The corners of a shape, less what is no slip: a fraction of a pixel, and the parts of a circle outside."""
    if shape.corners == NO_CORNERS or size is None:
        return shape.corners
    height, width = size
    left, top, right, bottom = shape.corners
    slack = max(right - left, bottom - top) * _SLACK if shape.kind == 'circle' else EDGE
    left, top = (0.0 if -slack <= side < 0 else side for side in (left, top))
    right = width if width < right <= width + slack else right
    bottom = height if height < bottom <= height + slack else bottom
    return left, top, right, bottom


#: Lists of classes, in the folder or above it.
LISTS = ('labels.txt', 'classes.txt')
#: So many files of a folder are looked at to tell what it is, and so many JSON of them.
_FILES, _OPENED = 2000, 20
#: So many times as many label maps as JSON, and it is a folder of label maps.
_STRAY = 10
#: Of a larger JSON the first bytes say what it is.
_HEAD = 1 << 16
#: More bytes are no list of classes.
_LARGEST_LIST = 8 << 20


def is_labelme(target: str) -> bool:
    """Whether a target is a JSON of Labelme, or a folder of which at least half of the JSON are."""
    if os.path.isfile(target):
        return target.lower().endswith('.json') and is_labelme_file(target)
    found: List[str] = []
    images: List[str] = []
    seen = 0
    for place, names, _ in walk(target, lambda *_: None):
        seen += len(names)
        found += [os.path.join(place, name) for name in names if name.lower().endswith('.json')]
        images += [os.path.join(place, name) for name in names if is_image_name(name)]
        if seen > _FILES:
            break
    if not found or (_STRAY * len(found) < len(images) and is_gray(images[0])):
        return False  # label maps, and what is left of how they were drawn
    some = found[:_OPENED]
    return 2 * sum(map(is_labelme_file, some)) >= len(some)


def is_labelme_file(path: str) -> bool:
    """Whether a JSON is of Labelme."""
    record = _beginning(path)
    return isinstance(record, dict) and isinstance(record.get('shapes'), list)


def is_other_file(path: str) -> bool:
    """Whether a JSON is sound, and of something else."""
    return is_of_others(_beginning(path))


def _beginning(path: str) -> Any:
    """What a JSON holds; of a large one which of Labelme's keys stand in its beginning. ``None``: it is damaged."""
    try:
        head = _head(path)
        if len(head) < _HEAD:
            return json.loads(head)
    except (OSError, ValueError, RecursionError):
        return None
    is_object = head.lstrip()[:1] == b'{'
    return {'shapes': []} if is_object and b'"shapes"' in head else {'': 0} if is_object else None


def _head(path: str) -> bytes:
    if FILES.is_far(path):
        return FILES.content(path, None, _HEAD).data
    with open_regular(path) as file:
        return file.read(_HEAD)


def read_classes(path: str) -> List[str]:
    """The names of a class list, a line each."""
    with open_regular(path) as file:
        return [line.strip() for line in file.read(_LARGEST_LIST).decode('utf-8-sig').splitlines() if line.strip()]


def classes_beside(target: str) -> Tuple[str, List[str]]:
    """The class list in a folder, or in the one above, and its names; empty where there is none that can be read."""
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
    home: Optional[str] = None,
    look: bool = True,
) -> LabelFacts:
    """Read the JSON of a folder, or one. Never raise for what the files hold.

    Labels are positions in ``class_names``, by default the names that occur, in order; objects of other
    names are in ``annotations.left_out``. Shapes of one label and ``group_id`` are one object, as in Labelme's own
    converters. Images are in ``images``, or where ``imagePath`` leads from ``home``, where copies lay before.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are JSON files.

    Raises:
        ValueError: There is not one shape, and nothing wrong.
    """
    faults = Faults()
    root, images_root = folder_of(target), os.path.abspath(images or folder_of(home or target))
    read: List[ShapeFile] = []
    for name in listed(target, faults) if os.path.isdir(target) else [os.path.basename(target)]:
        file = read_labelme(os.path.join(root, name), name, faults)
        if file is not None:
            image = _image_of(name, file.image, images is not None) if file.image else ''
            read.append(_sized(file._replace(image=image), images_root, name, faults if look else None))
    found = labels_of(read)
    if not found and not faults:
        raise ValueError(f'nothing was read: {len(read):,} JSON of Labelme without a shape')
    given = sorted(found) if class_names is None else class_names
    classes = list(dict.fromkeys(name for name in given if name not in NO_CLASS))
    looked_in = images_root if look else None
    within = around(images_root)
    return facts_of_shapes(read, target, classes, faults, num_classes, class_names is None, looked_in, within)


def folder_of(path: str) -> str:
    """A folder itself, or the folder that a file lies in."""
    return path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))


def listed(root: str, faults: Faults, ending: str = '.json') -> List[str]:
    """The files of an ending in a folder and those in it, relative to it."""
    names = []

    def refused(folder: str, error: OSError) -> None:
        faults.add(f'the folder cannot be read: {error.strerror or error}', folder)

    for folder, files, _ in walk(root, refused):
        names += [
            os.path.relpath(os.path.join(folder, name), root)
            for name in files
            if name.lower().endswith(ending) and not name.startswith('.')
        ]
    return sorted(names)


def _image_of(name: str, image: str, in_folder: bool) -> str:
    """The image of a file, relative to the root, or to the folder that the user names."""
    if in_folder:
        return os.path.basename(image.replace('\\', '/'))
    return os.path.normpath(os.path.join(os.path.dirname(name), image))


def around(root: str) -> str:
    """Return the folder that a data set may fill: of labels/train the images are in ../../images/train."""
    return os.path.dirname(os.path.dirname(root))


def _sized(file: ShapeFile, root: str, name: str, faults: Optional[Faults]) -> ShapeFile:
    """With the size of its image where the file does not say it; without the embedded image."""
    size = file.size
    if size is None and faults is not None:
        from PIL import Image

        try:
            if file.data:
                size = size_of_data(file.data)
            else:
                path = resolve_inside(root, file.image, around(root))
                if os.path.exists(path):
                    with open_regular(path) as image, Image.open(image) as opened:
                        height, width = shown_size(opened)
                    size = float(height), float(width)
        except Exception as error:  # a damaged file raises what it likes
            faults.add('cannot be read: the image, and the file has no size', f'{name}: {str(error)[:120]}')
    return file._replace(size=size, data='yes' if file.data else '')
