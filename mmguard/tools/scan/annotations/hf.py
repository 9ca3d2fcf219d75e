"""Hugging Face: folders of images with ``metadata.jsonl`` or ``metadata.csv``, and data sets saved to disk."""

from __future__ import annotations

import importlib.util
import math
import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from mmguard.errors import CannotRun
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.tools.scan.annotations.coco_records import NO_NUMBER, is_writable
from mmguard.tools.scan.annotations.disk import missing_files, other_sizes, shown_size
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.hf_parquet import features_of_parquet, rows_of_parquet
from mmguard.tools.scan.annotations.hf_rows import (
    BOXES,
    CATEGORIES,
    FILE,
    INFO,
    LABELS,
    METADATA,
    OBJECTS,
    STATE,
    Row,
    features_of_saved,
    names_of_features,
    record_of,
    rows_of_arrow,
    rows_of_metadata,
)
from mmguard.tools.scan.annotations.shape_records import NO_CORNERS
from mmguard.tools.scan.annotations.table import EXAMPLES, UNLISTED, Table, facts_of
from mmguard.tools.scan.sources.folders import walk
from mmguard.tools.storage.files import open_regular

Label = Union[int, str]
#: So many names in a folder are looked at.
_FILES = 5000
_HEAD = 1 << 16
_SPLITS = 'dataset_dict.json'


def is_image_folder(target: str) -> bool:
    """Whether a target is a metadata file with labels, or a folder that holds one."""
    if os.path.isfile(target):
        return os.path.basename(target) in METADATA and _has_labels(target)
    return any(_has_labels(os.path.join(target, name)) for name in metadata_in(target, _FILES))


def metadata_in(folder: str, most: Optional[int] = None) -> List[str]:
    """The metadata files in a folder and those in it, relative to it."""
    found: List[str] = []
    seen = 0
    for place, names, _ in walk(folder, lambda *_: None):
        found += [os.path.relpath(os.path.join(place, name), folder) for name in names if name in METADATA]
        seen += len(names)
        if most is not None and seen > most:
            break
    return sorted(found)


def _has_labels(path: str) -> bool:
    """Whether a metadata file names images and what they show, by its first lines."""
    try:
        with open_regular(path) as file:
            lines = file.read(_HEAD).decode('utf-8-sig', 'replace').splitlines()[:20]
    except (OSError, ValueError):
        return False
    keys = {*LABELS, OBJECTS}
    if path.endswith('.csv'):
        head = {cell.strip().strip('"') for cell in (lines or [''])[0].split(',')}
        return FILE in head and bool(head & keys)
    records = [record for record in map(record_of, lines) if record is not None]
    return any(keys & set(record) for record in records) and any(FILE in record for record in records)


def saved_splits(target: str) -> List[str]:
    """The folders of a data set that was saved to disk; none where a target is none."""
    if not os.path.isdir(target):
        return []
    if all(os.path.isfile(os.path.join(target, name)) for name in (INFO, STATE)):
        return [target]
    if not os.path.isfile(os.path.join(target, _SPLITS)):
        return []
    with os.scandir(target) as entries:
        names = sorted(entry.name for entry in entries if entry.is_dir())
    return [os.path.join(target, name) for name in names if os.path.isfile(os.path.join(target, name, STATE))]


@dataclass
class _Found:
    """What rows hold: images, and for each object its image, label, corners and place."""

    images: List[str] = field(default_factory=list)
    sizes: List[Tuple[float, float]] = field(default_factory=list)
    objects: List[Tuple[int, Label, Tuple[float, ...], str]] = field(default_factory=list)
    empty: int = 0


def scan_image_folder(
    target: str,
    num_classes: Optional[int] = None,
    class_names: Optional[Sequence[str]] = None,
    images: Optional[str] = None,
    home: Optional[str] = None,
    look: bool = True,
) -> LabelFacts:
    """Reads the metadata files of a folder, or one. Never raises for what they hold.

    Args:
        target (str): The folder, or one metadata file.
        num_classes (int, optional): Classes of the model. Default: as many as there are names, or as the labels need.
        class_names (sequence of str, optional): The classes. Default: the names that occur, in the order of the
            alphabet.
        images (str, optional): Folder of the images. Default: where ``file_name`` leads.
        home (str, optional): Where the files lay when they were no copies. Default: where they are.
        look (bool): Whether images are looked for.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are images.

    Raises:
        ValueError: There is not one label, and nothing wrong.
    """
    faults, found = Faults(), _Found()
    root = target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target))
    place = home or target
    images_root = images or (place if os.path.isdir(place) else os.path.dirname(os.path.abspath(place)))
    for name in metadata_in(target) if os.path.isdir(target) else [os.path.basename(target)]:
        folder = '' if images else os.path.dirname(name)
        for row in rows_of_metadata(os.path.join(root, name), name, faults):
            image = row.record.get(FILE)
            if not isinstance(image, str) or not image.strip() or '\0' in image or not is_writable(image):
                faults.add('a row has no file_name', f'{row.where}: {short(image)}')
                continue
            image = os.path.normpath(os.path.join(folder, image))
            _add(found, row, image, image_size(row, os.path.join(images_root, image) if look else ''), faults)
    facts = _facts(found, target, list(class_names) if class_names else None, num_classes, faults)
    assert facts.annotations is not None
    if look:
        annotations = facts.annotations
        annotations.missing, annotations.missing_files = missing_files(images_root, found.images, faults)
        stated = np.array(found.sizes, float).reshape(-1, 2)
        compared = other_sizes(images_root, found.images, stated)
        annotations.sizes_compared, annotations.size_mismatches, annotations.exif_turned = compared
        annotations.unreadable = faults.to_dict()
    return facts


def scan_saved(folder: str, num_classes: Optional[int] = None) -> LabelFacts:
    """Reads one split of a data set that was saved to disk: labels against the names of its ClassLabel.

    Args:
        folder (str): That of ``state.json``.
        num_classes (int, optional): Classes of the model. Default: as many as there are names.

    Raises:
        CannotRun: pyarrow is not installed.
        ValueError: It has no ClassLabel, or not one label, and nothing is wrong.
    """
    check_pyarrow(folder)
    faults = Faults()
    features = features_of_saved(folder, faults)
    return _scan_rows(folder, features, lambda _: rows_of_arrow(folder, faults), num_classes, faults)


def scan_parquet(name: str, files: Sequence[str], num_classes: Optional[int] = None) -> LabelFacts:
    """Reads one split of a data set as it lies on the Hub; see :func:`scan_saved`.

    Args:
        name (str): How it is called.
        files (list[str]): Its parts.
        num_classes (int, optional): Classes of the model. Default: as many as there are names.
    """
    check_pyarrow(name)
    faults = Faults()
    features = features_of_parquet(files[0], faults)
    return _scan_rows(name, features, lambda columns: rows_of_parquet(files, columns, faults), num_classes, faults)


def check_pyarrow(target: str) -> None:
    if importlib.util.find_spec('pyarrow') is None:
        raise CannotRun(f'{target}: data sets of Hugging Face are read by pyarrow: pip install pyarrow')


def _scan_rows(
    target: str,
    features: Mapping[str, Any],
    rows_of: Callable[[List[str]], Iterable[Row]],
    num_classes: Optional[int],
    faults: Faults,
) -> LabelFacts:
    found = _Found()
    names, column, image = names_of_features(features)
    if not column and not faults:
        raise ValueError(_without_labels(features))
    outer, _, inner = column.partition('.')
    for row in rows_of([outer, f'{image}.path', 'width', 'height']) if column else ():
        record = {OBJECTS: row.record.get(outer)} if inner else {LABELS[0]: row.record.get(outer)}
        record.update({key: row.record.get(key) for key in ('width', 'height')})
        path = row.record.get(image)
        _add(found, Row(row.where, record), path if isinstance(path, str) else '', image_size(row, ''), faults, inner)
    return _facts(found, target, names, num_classes, faults)


def _without_labels(features: Mapping[str, Any]) -> str:
    images = [key for key, one in features.items() if isinstance(one, dict) and one.get('_type') == 'Image']
    if len(images) > 1:
        column = images[-1]
        return (
            f'its labels are images, of the column {column!r}, which are not read here: write them into a folder, '
            f"`for n, row in enumerate(dataset): row[{column!r}].save(f'labels/{{n}}.png')`, and name that"
        )
    return 'no feature of it is a ClassLabel, with names: nothing says which labels are valid'


def image_size(row: Row, path: str) -> Tuple[float, float]:
    """Height and width as a row says them, else as its image has them; ``NO_NUMBER`` where nobody knows."""
    height, width = row.record.get('height'), row.record.get('width')
    if type(height) is int and type(width) is int and 0 < height < 1 << 24 and 0 < width < 1 << 24:
        return float(height), float(width)
    if path and OBJECTS in row.record and importlib.util.find_spec('PIL') is not None:
        from PIL import Image

        try:
            if os.path.isfile(path):
                with Image.open(path) as opened:
                    shown = shown_size(opened)
                return float(shown[0]), float(shown[1])
        except Exception:  # a damaged file raises what it likes; whether it can be read is asked elsewhere
            pass
    return float(NO_NUMBER), float(NO_NUMBER)


def _add(found: _Found, row: Row, image: str, size: Tuple[float, float], faults: Faults, category: str = '') -> None:
    number = len(found.images)
    found.images.append(image)
    found.sizes.append(size)
    before = len(found.objects)
    is_empty = False
    if OBJECTS in row.record:
        is_empty = row.record[OBJECTS] in (None, [], {})
        for label, box, where in objects_of(row, faults, category):
            corners = corners_of(box)
            if corners is None:
                faults.add('bbox is not four finite numbers', f'{where}: {short(box)}')
            else:
                found.objects.append((number, label, corners, where))
        is_empty = is_empty or (isinstance(row.record[OBJECTS], dict) and not any(row.record[OBJECTS].values()))
    else:
        for label in labels_of_row(row, faults):
            found.objects.append((number, label, NO_CORNERS, row.where))
    found.empty += is_empty and len(found.objects) == before


def labels_of_row(row: Row, faults: Faults) -> Iterator[Label]:
    """The labels of a whole image."""
    key = next((key for key in LABELS if key in row.record), '')
    value = row.record.get(key)
    for one in value if isinstance(value, list) and value else [value]:
        label = checked_label(one)
        if label is None:
            faults.add('a label is neither a whole number nor a name', f'{row.where}: {short(one)}')
        else:
            yield label


def objects_of(row: Row, faults: Faults, category: str = '') -> Iterator[Tuple[Label, Any, str]]:
    """Label, box and place of each object of a row."""
    objects = row.record[OBJECTS]
    if objects in (None, [], {}):
        return
    if isinstance(objects, list) and all(isinstance(one, dict) for one in objects):  # a record for each
        keys = dict.fromkeys(key for one in objects for key in one)
        objects = {key: [one.get(key) for one in objects] for key in keys}
    if not isinstance(objects, dict):
        faults.add('objects is no table of lists', f'{row.where}: {short(objects)}')
        return
    boxes = next((objects[key] for key in BOXES if key in objects), None)
    labels = next((objects[key] for key in (category, *CATEGORIES) if key in objects), None)
    if not isinstance(boxes, list) or not isinstance(labels, list):
        faults.add('objects lacks a list of bbox, or of category', f'{row.where}: {short(list(objects))}')
        return
    if len(boxes) != len(labels):
        faults.add('bbox and category are not as many', f'{row.where}: {len(boxes)}, {len(labels)}')
    for place, (box, value) in enumerate(zip(boxes, labels)):
        label, where = checked_label(value), f'{row.where}, object {place}'
        if label is None:
            faults.add('a label is neither a whole number nor a name', f'{where}: {short(value)}')
        else:
            yield label, box, where


def checked_label(value: Any) -> Optional[Label]:
    """A label as it can be counted; ``None`` for anything else."""
    if type(value) is int and abs(value) < 1 << 31:
        return value
    return value if isinstance(value, str) and value.strip() and is_writable(value) else None


def corners_of(box: Any) -> Optional[Tuple[float, ...]]:
    """x1, y1, x2, y2 of x, y, width, height; ``None`` where these are none."""
    if not isinstance(box, list) or len(box) != 4 or any(type(side) not in (int, float) for side in box):
        return None
    try:
        x, y, width, height = map(float, box)
    except OverflowError:
        return None
    return (x, y, x + width, y + height) if all(map(math.isfinite, (x, y, width, height))) else None


def _facts(
    found: _Found, target: str, declared: Optional[List[str]], num_classes: Optional[int], faults: Faults
) -> LabelFacts:
    if not found.objects and not faults:
        raise ValueError(f'nothing was read: {len(found.images):,} images without a label')
    labels = [label for _, label, _, _ in found.objects]
    named = sorted({label for label in labels if isinstance(label, str)})
    most = max((label for label in labels if isinstance(label, int)), default=-1)
    names = declared if declared is not None else named
    classes = num_classes or len(names) or max(most + 1, 1)
    place_of = {name: place for place, name in enumerate(names)}
    values = [label if isinstance(label, int) else place_of.get(label, -1) for label in labels]
    unlisted = np.array([isinstance(label, str) and label not in place_of for label in labels], bool)
    words = [label if isinstance(label, str) else names[label] if 0 <= label < len(names) else str(label)
             for label in labels]  # fmt: skip
    categories = list(dict.fromkeys([*names, *sorted(set(words))]))
    code_of = {name: code for code, name in enumerate(categories)}
    boxed = np.array([corners != NO_CORNERS for _, _, corners, _ in found.objects], bool)
    annotations = AnnotationFacts(format='hf', labelled_by='class list', sources=[target])
    annotations.classes_counted = num_classes is None and declared is None
    annotations.categories = dict(enumerate(names))
    counts = Counter(words)
    annotations.unused = [name for name in names if name not in counts]
    annotations.left_out_names = {name: counts[name] for name in named if name not in place_of}
    twice = [path for path, count in Counter(found.images).items() if path and count > 1]
    annotations.duplicate_files = twice[:EXAMPLES]
    table = Table(
        images=found.images,
        sizes=np.array(found.sizes, float).reshape(-1, 2),
        categories=categories,
        image=np.array([image for image, _, _, _ in found.objects], np.int64),
        category=np.array([code_of[word] for word in words], np.int64),
        label=np.array(values, np.int64),
        corners=np.array([corners for _, _, corners, _ in found.objects], float).reshape(-1, 4),
        boxed=boxed,
        ignored=np.zeros(len(labels), bool),
        left_out={UNLISTED: unlisted},
        judged=~unlisted & boxed,
        where=[where for _, _, _, where in found.objects],
    )
    facts = facts_of(table, classes, names, annotations)
    facts.of_images = bool(found.objects) and not boxed.any()
    annotations.images_without_target = 0 if facts.of_images else annotations.images_without_target - found.empty
    invalid = [where for value, (_, label, _, where) in zip(values, found.objects)
               if isinstance(label, int) and not 0 <= value < classes]  # fmt: skip
    if invalid:
        annotations.box_examples['label'] = invalid[:EXAMPLES]
    annotations.unreadable = faults.to_dict()
    return facts
