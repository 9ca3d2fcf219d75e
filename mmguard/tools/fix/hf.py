"""Corrects the metadata files of Hugging Face: names, boxes, and rows that cannot be read."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from typing import Any, Dict, Optional, Tuple

from mmguard.text.words import counted
from mmguard.tools.fix.boxes import clamped, fault_of, shortest
from mmguard.tools.fix.label_files import Corrected, LabelFiles, names_below
from mmguard.tools.fix.options import FixOptions, NotCorrected
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.hf import checked_label, corners_of, image_size, metadata_in, objects_of
from mmguard.tools.scan.annotations.hf_rows import BOXES, CATEGORIES, FILE, LABELS, METADATA, OBJECTS, Row, record_of
from mmguard.tools.scan.annotations.shape_target import folder_of

Size = Tuple[float, float]


def files_of_image_folder(target: str, options: FixOptions) -> LabelFiles:
    root = folder_of(target)
    is_folder = os.path.isdir(target)
    names = metadata_in(target) if is_folder else [os.path.basename(target)]
    below = names_below(root) if is_folder else ()
    beside = sorted(name for name in below if os.path.basename(name) not in METADATA)

    def correct(data: bytes, name: str) -> Corrected:
        return correct_metadata(data, name, options, os.path.dirname(os.path.join(root, name)))

    return LabelFiles([(os.path.join(root, name), name) for name in (*names, *beside)], correct, frozenset(beside))


def correct_metadata(data: bytes, name: str, options: FixOptions, folder: str) -> Corrected:
    """Corrects a file; lines that are right stay as they are written.

    Args:
        data (bytes): The file.
        name (str): Its name.
        options (FixOptions): ``classes`` are the names that are valid; ``None``: any.
        folder (str): That ``file_name`` is relative to.

    Raises:
        NotCorrected: It is no UTF-8.
    """
    if options.boxes not in ('', 'either') or options.scale is not None or options.sizes:
        raise NotCorrected('--boxes, --scale and --sizes are of other formats')
    try:
        text = data.decode('utf-8-sig')
    except UnicodeDecodeError as error:
        raise NotCorrected(f'unreadable: {error}') from error
    counts: Counter = Counter()
    is_csv = name.endswith('.csv')
    corrected = (_csv if is_csv else _jsonl)(text, options, counts, folder)
    counts = +counts
    ending = os.path.splitext(name)[1]
    if not counts:
        return Corrected(data, ending, [], {}, {})
    words = [f'{counted(number, what.split(" ")[0])} {what.split(" ", 1)[1]}' for what, number in counts.items()]
    return Corrected(corrected.encode('utf-8', 'backslashreplace'), ending, words, {}, dict(counts))


def _jsonl(text: str, options: FixOptions, counts: Counter, folder: str) -> str:
    kept = []
    for line in text.splitlines():
        record = record_of(line)
        if record is None or not _is_name(record.get(FILE)):
            counts['line left out'] += bool(line.strip())
            continue
        before = sum(counts.values())
        if OBJECTS in record:
            _correct_objects(record, options, counts, folder)
        elif not _correct_labels(record, options, counts):
            continue
        kept.append(line if sum(counts.values()) == before else json.dumps(record, ensure_ascii=False))
    return '\n'.join([*kept, ''])


def _csv(text: str, options: FixOptions, counts: Counter, folder: str) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator='\n')
    try:
        rows = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise NotCorrected(f'unreadable: {error}') from error
    head = rows[0] if rows else []
    writer.writerow(head)
    for cells in rows[1:]:
        record: Dict[str, Any] = dict(zip(head, cells))
        if len(cells) != len(head) or not _is_name(record.get(FILE)):
            counts['line left out'] += bool(cells)
        elif _correct_labels(record, options, counts):
            writer.writerow([record[key] for key in head])
    return out.getvalue()


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and '\0' not in value


def _correct_labels(record: Dict[str, Any], options: FixOptions, counts: Counter) -> bool:
    """Corrects the labels of a whole image, in place; whether the row stays."""
    key = next((key for key in LABELS if key in record), '')
    values = record.get(key)
    listed = values if isinstance(values, list) else [values]
    new = [_renamed(value, options, counts) for value in listed]
    kept = [value for value in new if value is not None]
    if not kept:
        counts['line left out'] += 1
        return False
    counts['label left out'] += len(new) - len(kept)
    record[key] = kept if isinstance(values, list) else kept[0]
    return True


def _renamed(value: Any, options: FixOptions, counts: Counter) -> Any:
    """A label under the name that it is to have; ``None`` where it cannot stay."""
    label = checked_label(value)
    if isinstance(label, str) and options.rename.get(label, label) != label:
        counts['label renamed'] += 1
        label = options.rename[label]
    is_number = isinstance(label, int) or (isinstance(label, str) and label.strip().lstrip('-').isdigit())
    return None if options.classes is not None and not is_number and label not in options.classes else label


def _correct_objects(record: Dict[str, Any], options: FixOptions, counts: Counter, folder: str) -> None:
    """Leaves out objects that no training can use, and cuts boxes off at the edge, in place."""
    objects = record[OBJECTS]
    height, width = image_size(Row('', record), os.path.join(folder, record[FILE]))
    bounds: Size = (width if width > 0 else float('inf'), height if height > 0 else float('inf'))
    if isinstance(objects, list) and all(isinstance(one, dict) for one in objects):
        record[OBJECTS] = [
            one for one in objects if _stays({key: [one[key]] for key in one}, 0, one, options, counts, bounds)
        ]
        counts['object left out'] += len(objects) - len(record[OBJECTS])
        return
    if not isinstance(objects, dict) or not any(True for _ in objects_of(Row('', record), Faults())):
        if objects not in (None, [], {}) and not (isinstance(objects, dict) and not any(objects.values())):
            counts['object left out'] += 1
            record[OBJECTS] = {key: [] for key in objects} if isinstance(objects, dict) else {}
        return
    lists = {key: value for key, value in objects.items() if isinstance(value, list)}
    least = min(len(value) for key, value in lists.items() if key in (*BOXES, *CATEGORIES))
    most = max(map(len, lists.values()))
    kept = [place for place in range(least) if _stays(objects, place, None, options, counts, bounds)]
    if len(kept) < most:
        counts['object left out'] += most - len(kept)
        for key, value in lists.items():
            objects[key] = [value[place] for place in kept if place < len(value)]


def _stays(
    objects: Dict[str, Any], place: int, single: Optional[Dict[str, Any]], options: FixOptions, counts: Counter,
    bounds: Size,
) -> bool:  # fmt: skip
    boxes = next((key for key in BOXES if key in objects), None)
    labels = next((key for key in CATEGORIES if key in objects), None)
    if boxes is None or labels is None:
        return False
    label = _renamed(objects[labels][place], options, counts)
    corners = corners_of(objects[boxes][place])
    if label is None or corners is None:
        return False
    left, top, right, bottom = corners
    if fault_of((left, top, right, bottom), *bounds):
        return False
    inside = clamped((left, top, right, bottom), *bounds)
    _put(objects, labels, place, single, label)
    if inside != (left, top, right, bottom):
        a, b, c, d = map(float, inside)
        _put(objects, boxes, place, single, [shortest(a), shortest(b), shortest(c - a), shortest(d - b)])
        counts['box clamped'] += 1
    return True


def _put(objects: Dict[str, Any], key: str, place: int, single: Optional[Dict[str, Any]], value: Any) -> None:
    """Writes a value of an object: into its list, or into its own record."""
    if single is None:
        objects[key][place] = value
    else:
        single[key] = value
