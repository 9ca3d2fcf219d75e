"""The COCO file from which YOLO label files were probably converted: it contains the same objects."""

from __future__ import annotations

import os
from collections import Counter
from typing import Counter as CounterOf
from typing import Dict, List, Optional, Tuple

import numpy as np

from mmguard.findings.yolo import Original
from mmguard.formats.coco.file import CocoFile, coco_files, read_coco
from mmguard.formats.faults import Faults
from mmguard.labels.numbering import COCO_IDS

#: (Index of the label file, label or id) -> count.
Pairs = CounterOf[Tuple[int, int]]

#: Minimum fraction of the rows whose image is in the file, and of the file's objects of these images that have a
#: row.
_SHARED, _SAME = 0.5, 0.99
#: Maximum size of a file that is read for this, in bytes.
_LARGEST = 1 << 27


def find_original(texts: List[Tuple[str, str]], columns: np.ndarray, names: List[str], root: str) -> Optional[Original]:
    """Find a COCO file with the same images in or next to the data set, and return the differences in its counts.

    Args:
        texts (list): Pairs of label file and image.
        columns (ndarray): Rows of the label files, (N, C): index of the file, line, label, ...
        names (list[str]): Class names.
        root (str): Folder of the data set.
    """
    stems = {os.path.splitext(os.path.basename(text))[0]: number for number, (text, _) in enumerate(texts)}
    for file in [*coco_files(root), *coco_files(os.path.dirname(os.path.abspath(root)))] if names else ():
        if os.path.getsize(file.path) > _LARGEST:
            continue
        coco = read_coco(file.path, file.name, Faults())
        images = {
            code: stems[stem]
            for code, name in zip(coco.images.id, coco.images.name)
            for stem in [os.path.splitext(os.path.basename(name))[0]]
            if stem in stems
        }
        rows = columns[np.isin(columns[:, 0], list(images.values())), :3].astype(int)
        here = Counter(zip(rows[:, 0].tolist(), rows[:, 2].tolist()))
        by_id = _count_ids(coco, images)
        total = sum(by_id.values())
        if len(rows) < _SHARED * len(columns) or not _SAME * total <= len(rows) <= total or not total:
            continue
        label_of = {code: names.index(name) for code, name in coco.categories if name in names}
        there, looked_up = (_renumber(by_id, table) for table in (label_of, dict(zip(COCO_IDS, range(80)))))
        if sum(there.values()) != total or not here - there:
            return None
        counts = {}
        for label in sorted({label for both in (here - there, there - here) for _, label in both}):
            name = names[label] if label < len(names) else str(label)
            counts[name] = _count_label(here, label), _count_label(there, label)
        return Original(file.name, counts, not here - looked_up)
    return None


def _count_ids(coco: CocoFile, images: Dict[int, int]) -> Pairs:
    """Count the annotations by index of the label file and category id, without crowds, which are not converted."""
    rows = coco.annotations
    wanted = np.isin(rows.image_id, list(images)) & ~rows.crowd
    return Counter((images[image], code) for image, code in zip(rows.image_id[wanted], rows.category_id[wanted]))


def _renumber(pairs: Pairs, table: Dict[int, int]) -> Pairs:
    return Counter({(place, table[code]): number for (place, code), number in pairs.items() if code in table})


def _count_label(pairs: Pairs, label: int) -> int:
    return sum(number for (_, one), number in pairs.items() if one == label)
