"""Cityscapes: a JSON of polygons for each image, ``*_gtFine_polygons.json``, of which label maps are drawn."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Optional

from mmguard.findings.facts import LabelFacts
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.labelme import is_folder_of, listed
from mmguard.tools.scan.annotations.shape_records import (
    NO_CORNERS,
    SHORT,
    Shape,
    ShapeFile,
    around,
    label_of,
    points_of,
    read_json,
    size_of,
)
from mmguard.tools.scan.annotations.shape_target import ShapeTarget
from mmguard.tools.scan.annotations.shapes import ShapeSet, facts_of_shapes
from mmguard.tools.scan.sources.folder import POLYGONS, TRAINED_ENDINGS
from mmguard.tools.storage.files import open_regular

#: The classes, by train id.
CLASSES = (
    'road', 'sidewalk', 'building', 'wall', 'fence', 'pole', 'traffic light', 'traffic sign', 'vegetation', 'terrain',
    'sky', 'person', 'rider', 'car', 'truck', 'bus', 'train', 'motorcycle', 'bicycle',
)  # fmt: skip
#: Names that cityscapesscripts knows, and nobody trains.
OTHERS = (
    'unlabeled', 'ego vehicle', 'rectification border', 'out of roi', 'static', 'dynamic', 'ground', 'parking',
    'rail track', 'guard rail', 'bridge', 'tunnel', 'polegroup', 'caravan', 'trailer', 'license plate',
)  # fmt: skip
#: Behind a name: several objects, drawn as one.
_GROUP = 'group'
_LABELS, _IMAGES = 'gtFine', 'leftImg8bit'
#: Of a larger JSON the first bytes say what it is.
_HEAD = 1 << 12


def is_cityscapes(target: str, suffix: Optional[str] = None) -> bool:
    """Whether a target is a JSON of Cityscapes, or a folder of them without label maps.

    Args:
        suffix (str, optional): How the names of label files end, where the user says it: in a folder with label maps,
            too.
    """
    if os.path.isfile(target):
        return target.lower().endswith('.json') and is_cityscapes_file(target)
    if suffix:
        return suffix.endswith(POLYGONS)
    return is_folder_of(target, is_cityscapes_file, POLYGONS, TRAINED_ENDINGS)


def is_cityscapes_file(path: str) -> bool:
    """Whether a JSON is of Cityscapes, by its name or its beginning."""
    if path.endswith(POLYGONS):
        return True
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return False
    return all(key in head for key in (b'"imgHeight"', b'"imgWidth"', b'"objects"'))


def scan_cityscapes(target: ShapeTarget) -> LabelFacts:
    """Reads the JSON of a folder. Never raises for what the files hold.

    Args:
        target (ShapeTarget): The folder, or one JSON. The classes are the 19 that have a train id; the images, laid out
            alike, are in ``leftImg8bit`` in place of ``gtFine``, where it is there.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are JSON files.

    Raises:
        ValueError: There is not one polygon, and nothing wrong.
    """
    faults = Faults()
    read = target.read(partial(listed, ending=POLYGONS), read_cityscapes, faults)
    if not any(file.shapes for file in read) and not faults:
        raise ValueError(f'nothing was read: {len(read):,} JSON of Cityscapes without a polygon')
    classes = list(CLASSES if target.class_names is None else dict.fromkeys(target.class_names))
    no_class = [name for name in (*CLASSES, *OTHERS) if name not in classes]
    known = ShapeSet('cityscapes', target.path, classes, no_class, 'objects[{}]'.format, True)
    images = (target.images or _images_of(target.home_root)) if target.look else None
    return facts_of_shapes(read, known, faults, target.num_classes, False, images)


def _images_of(root: str) -> Optional[str]:
    """The folder of images beside one of labels; ``None`` where it is not there."""
    parts = os.path.abspath(root).split(os.sep)
    if _LABELS not in parts:
        return None
    place = len(parts) - 1 - parts[::-1].index(_LABELS)
    found = os.sep.join([*parts[:place], _IMAGES, *parts[place + 1 :]])
    return found if os.path.isdir(found) else None


def read_cityscapes(path: str, source: str, faults: Faults) -> Optional[ShapeFile]:
    """Reads a file; never raises.

    Args:
        path (str): The file.
        source (str): How messages name it.
        faults (Faults): Takes what is wrong; ``None`` is returned where that is all of it.
    """
    content = read_json(path, source, faults)
    if content is None:
        return None
    (record,) = content
    if not isinstance(record, dict) or not isinstance(record.get('objects'), list):
        faults.add('is no file of Cityscapes: it has no list "objects"', source)
        return None
    size = size_of(record.get('imgHeight'), record.get('imgWidth'), 'imgHeight or imgWidth', source, faults)
    found = [polygon_of(one, place, source, faults) for place, one in enumerate(record['objects'])]
    stem = source[: -len(POLYGONS)] if source.endswith(POLYGONS) else os.path.splitext(source)[0]
    stem = stem[: -len(_LABELS) - 1] if stem.endswith(f'_{_LABELS}') else stem
    return ShapeFile(source, f'{stem}_{_IMAGES}.png', size, '', [one for one in found if one])


def polygon_of(record: Any, place: int, source: str, faults: Faults) -> Optional[Shape]:
    """What a record of ``objects`` stands for.

    Args:
        record: Whatever the JSON holds there.
        place (int): Its place in the list.
        source (str): How messages name the file.
        faults (Faults): Takes what is wrong; ``None`` is returned where nothing can be made of it, and for what was
            deleted.
    """
    where = f'{source}: objects[{place}]'
    if not isinstance(record, dict):
        faults.add('a shape is no object', f'{where} is {short(record)}')
        return None
    if record.get('deleted'):
        return None
    label = label_of(record.get('label'), where, faults)
    points = None if label is None else points_of(record.get('polygon'), where, faults)
    if label is None or points is None:
        return None
    single = label[: -len(_GROUP)] if label.endswith(_GROUP) else label
    if label not in OTHERS and single in (*CLASSES, *OTHERS):
        label = single
    fault = SHORT if len(points) < 3 else ''
    return Shape(place, label, 'polygon', NO_CORNERS if fault else around(points), None, fault)
