"""OpenImages: boxes in a csv file, in fractions of the image's size."""

from __future__ import annotations

import csv
import os
from collections import Counter
from itertools import groupby, islice
from typing import Container, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.files.regular import open_regular
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.tools.scan.annotations.coco_records import NO_NUMBER
from mmguard.tools.scan.annotations.disk import missing_files, other_sizes
from mmguard.tools.scan.annotations.faults import Faults, short
from mmguard.tools.scan.annotations.openimages_hierarchy import check_hierarchy
from mmguard.tools.scan.annotations.openimages_metas import compare_metas, read_metas, sizes_of
from mmguard.tools.scan.annotations.table import UNLISTED, Table, facts_of

#: Columns that mmdet reads by place, whatever the header calls them.
_LABEL, _CONFIDENCE, _LEFT, _RIGHT, _TOP, _BOTTOM, _COLUMNS = 2, 3, 4, 5, 6, 7, 13
#: What stands in the columns behind the box, in nearly every row.
_FLAGS = {'0', '1', '-1'}


def scan_openimages(
    ann_file: str,
    label_file: str,
    meta_file: str = '',
    num_classes: Optional[int] = None,
    images: Optional[str] = None,
    hierarchy_file: str = '',
    image_level_ann_file: str = '',
) -> LabelFacts:
    """Reads OpenImages' boxes. Never raises for what the files hold.

    Boxes are judged as fractions: inside an image is (0, 1).

    Args:
        ann_file (str): ``*-annotations-bbox.csv``.
        label_file (str): ``class-descriptions-boxable.csv``: a label is the place of its line.
        meta_file (str): The pickle with the sizes of the images; it must name the images of ``ann_file`` in their
            order. Empty: not looked at.
        num_classes (int, optional): Classes of the head. Default: the lines of ``label_file``.
        images (str, optional): Folder of the images; given, missing files are looked for, and sizes compared.
        hierarchy_file (str): The JSON with the tree of the classes. Empty: not looked at.
        image_level_ann_file (str): The csv with labels of whole images. Empty: not looked at.

    Returns:
        LabelFacts: ``kind='instances'``; examples show fractions, as the file does.
    """
    faults = Faults()
    annotations = AnnotationFacts(format='openimages', labelled_by='class list')
    ids = [(row[0], row[1]) for _, row in _rows(label_file, 2, faults)]
    label_of = {mid: label for label, (mid, _) in enumerate(ids)}
    names = [name for _, name in ids]
    place_of: Dict[str, int] = {}
    image: List[int] = []
    mids: List[str] = []
    corners: List[Tuple[float, ...]] = []
    source = os.path.basename(ann_file)
    for number, row in _rows(ann_file, _COLUMNS, faults, headers=1):
        if not _FLAGS.issuperset(row[_BOTTOM + 1 : _COLUMNS]):
            _check_flags(row, f'{source}: row {number}', faults)
        image.append(place_of.setdefault(f'{row[0]}.jpg', len(place_of)))
        mids.append(row[_LABEL])
        try:
            corners.append(tuple(float(row[side]) for side in (_LEFT, _TOP, _RIGHT, _BOTTOM)))
        except ValueError:
            faults.add(
                'a corner is no number: mmdet stops here',
                f'{source}: row {number}: {short(row[_LEFT : _BOTTOM + 1])}',
            )
            corners.append((NO_NUMBER,) * 4)
    label = np.array([label_of.get(mid, -1) for mid in mids], np.int64)
    boxes = np.array(corners, float).reshape(-1, 4)
    boxed = ~(boxes == NO_NUMBER).all(axis=1)
    rows_of = Counter(mids)
    unknown = sorted(mid for mid in rows_of if mid not in label_of)
    for mid in unknown:
        faults.add('a label is not in the label file: mmdet stops here', f'{source}: {short(mid)}')
    if hierarchy_file:
        check_hierarchy(hierarchy_file, label_of, faults)
    if image_level_ann_file:
        _check_image_labels(image_level_ann_file, label_of, faults)
    table = Table(
        images=list(place_of),
        sizes=np.ones((len(place_of), 2)),
        categories=names,
        image=np.array(image, np.int64),
        category=label,
        label=label,
        corners=boxes,
        boxed=boxed,
        ignored=np.zeros(len(mids), bool),
        left_out={UNLISTED: label < 0, 'no box': ~boxed},
        judged=label >= 0,
        shows_size=False,
    )
    annotations.categories = dict(enumerate(names))
    annotations.unused = [name for mid, name in ids if mid not in rows_of]
    annotations.left_out_names = {mid: rows_of[mid] for mid in unknown}
    if images is not None:
        annotations.missing, annotations.missing_files = missing_files(images, list(place_of), faults)
    if meta_file:
        metas = read_metas(meta_file, faults)
        if metas:
            listed = [table.images[place] for place, _ in groupby(image)]
            compare_metas(metas, listed, os.path.basename(meta_file), faults)
        if metas and images is not None:
            sizes = sizes_of(metas, table.images)
            annotations.sizes_compared, annotations.size_mismatches = other_sizes(images, table.images, sizes)
    facts = facts_of(table, max(len(names), 1) if num_classes is None else num_classes, names, annotations)
    annotations.over_edge = 0  # an edge of one pixel is no fraction
    annotations.box_examples.pop('over_edge', None)
    annotations.unreadable = faults.to_dict()
    return facts


def _check_flags(row: Sequence[str], where: str, faults: Faults) -> None:
    for flag in row[_BOTTOM + 1 : _COLUMNS]:
        try:
            int(flag)
        except ValueError:
            faults.add('a flag (IsOccluded, ...) is no whole number: mmdet stops here', f'{where}: {short(flag)}')


def _check_image_labels(path: str, labels: Container[str], faults: Faults) -> None:
    source = os.path.basename(path)
    for number, row in _rows(path, _CONFIDENCE + 1, faults, headers=1):
        if row[_LABEL] not in labels:
            what = 'a label of an image is not in the label file: mmdet stops here'
            faults.add(what, f'{source}: row {number}: {short(row[_LABEL])}')
        try:
            float(row[_CONFIDENCE])
        except ValueError:
            what = 'the confidence of a label is no number: mmdet stops here'
            faults.add(what, f'{source}: row {number}: {short(row[_CONFIDENCE])}')


def _rows(path: str, columns: int, faults: Faults, headers: int = 0) -> Iterator[Tuple[int, List[str]]]:
    """Number and columns of the rows behind the header that have enough of them."""
    source = os.path.basename(path) or path
    empty = True
    try:
        with open_regular(path) as binary:
            lines = (line.decode('utf-8') for line in binary)
            for number, row in islice(enumerate(csv.reader(lines), 1), headers, None):
                empty = False
                if len(row) < columns:
                    faults.add(f'a row has fewer than {columns} columns', f'{source}: row {number}')
                else:
                    yield number, row
    except UnicodeDecodeError:
        faults.add('is not UTF-8', source)
    except csv.Error as error:
        faults.add(f'is no csv: {error}', source)
    except (OSError, ValueError) as error:
        faults.add(f'cannot be opened: {getattr(error, "strerror", None) or error}', source)
    if empty:
        faults.add('the file is empty', source)
