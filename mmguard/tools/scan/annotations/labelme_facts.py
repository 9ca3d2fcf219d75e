"""From files of Labelme to the facts of a data set."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.tools.scan.annotations.coco_records import NO_NUMBER
from mmguard.tools.scan.annotations.disk import missing_files, other_sizes
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.labelme_json import NO_AREA, NO_CORNERS, Shape, ShapeFile
from mmguard.tools.scan.annotations.table import EDGE, EXAMPLES, UNLISTED, Table, facts_of

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
    """Counts objects, and what is wrong with them.

    Args:
        files (list[ShapeFile]): What was read.
        target (str): What was named.
        names (list[str]): The classes.
        faults (Faults): What could not be read; takes folders that cannot be looked into.
        num_classes (int, optional): Classes of the head. Default: as many as there are names.
        counted (bool): The classes are the names that occur.
        images (str, optional): The folder that the images are relative to. Default: they are not looked for.
        within (str): The folder that names of images must not leave. Default: that of the images.

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
    label_of = {name: label for label, name in enumerate(names)}
    place_of = {name: place for place, name in enumerate(categories)}
    rows: List[Tuple[int, Shape]] = []
    for number, one in enumerate(read):
        for shape in one.objects:
            rows.append((number, shape._replace(corners=_inside(shape, one.file.size))))
            if shape.fault:
                annotations.mask_faults[shape.fault] = annotations.mask_faults.get(shape.fault, 0) + 1
                examples = annotations.mask_examples.setdefault(shape.fault, [])
                if len(examples) < EXAMPLES:
                    examples.append(f'{one.file.name}: shapes[{shape.place}], {shape.label!r}')
    label = np.array([label_of.get(shape.label, -1) for _, shape in rows], np.int64)
    unboxed = np.array([shape.corners == NO_CORNERS for _, shape in rows], bool)
    none = np.array([shape.label in NO_CLASS for _, shape in rows], bool)
    return Table(
        images=[one.file.name for one in read],
        sizes=np.array([one.file.size or (NO_NUMBER, NO_NUMBER) for one in read], float).reshape(-1, 2),
        categories=list(categories),
        image=np.array([number for number, _ in rows], np.int64),
        category=np.array([place_of[shape.label] for _, shape in rows], np.int64),
        label=label,
        corners=np.array([shape.corners for _, shape in rows], float).reshape(-1, 4),
        boxed=~unboxed,
        ignored=none,
        left_out={UNLISTED: (label < 0) & ~none, 'no box': unboxed},
        judged=(label >= 0) & ~unboxed,
        shows_size=False,
    )


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
