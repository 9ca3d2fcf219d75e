"""COCO and LVIS JSON."""

from __future__ import annotations

import os
from collections import Counter
from typing import Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from mmguard.diagnosis.facts import AnnotationFacts, LabelFacts
from mmguard.scan.annotations.coco_file import CocoFile, read_coco
from mmguard.scan.annotations.coco_records import ABSENT, NO_NUMBER
from mmguard.scan.annotations.disk import missing_files, other_sizes
from mmguard.scan.annotations.faults import Faults
from mmguard.scan.annotations.table import EXAMPLES, Table, counts_of, facts_of, places, repeated, side_by_side
from mmguard.words import counted

#: Beyond it an id is none that could be a label: a text, or nothing at all.
LARGEST_LABEL = 1 << 53
#: The shorter side, in pixels, below which mmdet's own configs leave images out.
MIN_SIZE = 32


class Numbering(NamedTuple):
    """How categories become labels.

    Attributes:
        by (str): ``AnnotationFacts.labelled_by``.
        labels (list[int]): Label of each category of the file; -1: it has none.
        names (list[str]): Names of the labels; empty where they have none.
    """

    by: str
    labels: List[int]
    names: List[str]


def scan_coco(
    path: str,
    num_classes: Optional[int] = None,
    class_names: Optional[Sequence[str]] = None,
    images: Optional[str] = None,
    min_size: int = MIN_SIZE,
    lvis: bool = False,
    by_url: Optional[bool] = None,
) -> LabelFacts:
    """Reads a file of COCO's format (LVIS, Objects365, panoptic, ...) and says what is in it. Never raises for what
    the file holds: that is in ``facts.annotations.unreadable``.

    With ``class_names`` the labels are mmdet's: the position of a category in the file's own list, counting only the
    listed names. (The order of ``class_names`` changes nothing; where it differs, ``annotations.renamed`` says so.)
    mmdet leaves categories that are not listed out without a word; so do the facts, in ``annotations.left_out``.
    With ``num_classes`` alone the labels are the category ids, as DETR and torchvision's references train them. With
    neither, every category of the file is a class, in the file's order.

    Args:
        path (str): The JSON file.
        num_classes (int, optional): Classes of the head. Default: as many as there are names.
        class_names (sequence of str, optional): ``metainfo.classes`` of the data set.
        images (str, optional): Folder of the images; given, missing files are looked for.
        min_size (int): Images with a shorter side are counted as small, ``filter_cfg['min_size']`` of the data set.
        lvis (bool): Labels as mmdet's LVIS data sets give them: every category of the file, listed or not.
        by_url (bool, optional): Images are named by ``coco_url``, as LVIS 1.0 does. Default: where there is no
            ``file_name``.

    Returns:
        LabelFacts: ``kind='instances'``. Histogram and values count what training sees: no crowds, nothing that the
        loader leaves out. ``files`` are images.
    """
    faults = Faults()
    path = os.fspath(path)
    source = os.path.basename(path) or path
    coco = read_coco(path, source, faults, bool(by_url))
    annotations = AnnotationFacts(format='lvis' if lvis else 'coco', min_size=min_size)
    numbering = _number(coco, num_classes, class_names, lvis)
    annotations.labelled_by = numbering.by
    table = _table(coco, numbering)
    _describe_categories(coco, table, class_names, numbering, annotations, faults, source)
    _describe_ids(coco, table, annotations)
    if images is not None:
        names = [name for name in coco.images.name if name]
        annotations.missing, annotations.missing_files = missing_files(os.fspath(images), names, faults)
        annotations.sizes_compared, annotations.size_mismatches = other_sizes(
            os.fspath(images), coco.images.name, coco.images.sizes
        )
    del coco  # half of the memory, and not needed for counting
    if num_classes is None:
        num_classes = max(len(numbering.names), 1)
    facts = facts_of(table, num_classes, numbering.names, annotations)
    annotations.unreadable = faults.to_dict()
    return facts


def _number(coco: CocoFile, num_classes: Optional[int], class_names: Optional[Sequence[str]], lvis: bool) -> Numbering:
    names = [name for _, name in coco.categories]
    if class_names is None and num_classes is not None and not lvis:
        return Numbering('category id', [], [])
    if class_names is None or lvis:
        # The last of two categories with one id gets it, as in mmdet's dict.
        last = {code: label for label, (code, _) in enumerate(coco.categories)}
        return Numbering('file order', [last[code] for code, _ in coco.categories], list(class_names or names))
    wanted = set(class_names)
    codes = [code for code, name in coco.categories if name in wanted]
    last = {code: label for label, code in enumerate(codes)}
    return Numbering('file order', [last.get(code, -1) for code, _ in coco.categories], list(class_names))


def _table(coco: CocoFile, numbering: Numbering) -> Table:
    columns = coco.annotations
    sizes = coco.images.sizes
    image = places(columns.image_id, np.array(coco.images.id, np.int64))
    image[columns.image_id == ABSENT] = -1
    category = places(columns.category_id, np.array([code for code, _ in coco.categories], np.int64))
    category[columns.category_id == ABSENT] = -1
    left, top, width, height = columns.box.T
    boxed = ~((left == NO_NUMBER) & (top == NO_NUMBER) & (width == NO_NUMBER) & (height == NO_NUMBER))
    with np.errstate(over='ignore', invalid='ignore'):
        corners = side_by_side(left, top, left + width, top + height)
    if numbering.by == 'category id':
        labels = columns.category_id
        # Ids that are no integers cannot be trained as labels; they are told as faults.
        unlisted = labels < -LARGEST_LABEL
    else:
        labels = np.array([*numbering.labels, -1], np.int64)[category]
        unlisted = labels < 0
    left_out = {'category not in the class list': unlisted, 'ignore is set': columns.ignore}
    if numbering.by != 'category id':
        left_out.update(_left_out_by_mmdet(coco, image, corners, boxed, sizes))
    return Table(
        images=[name or f'image {coco.ids.original(code)}' for code, name in zip(coco.images.id, coco.images.name)],
        sizes=sizes,
        categories=[str(coco.ids.original(code)) for code, _ in coco.categories],
        image=image,
        category=category,
        label=labels,
        corners=corners,
        boxed=boxed,
        aside=columns.crowd,
        left_out=left_out,
        judged=~unlisted & ~columns.ignore,
    )


def _left_out_by_mmdet(
    coco: CocoFile, image: np.ndarray, corners: np.ndarray, boxed: np.ndarray, sizes: np.ndarray
) -> Dict[str, np.ndarray]:
    """The rules of ``CocoDataset.parse_data_info``."""
    columns = coco.annotations
    inside = boxed.copy()
    with np.errstate(invalid='ignore', over='ignore'):
        for axis, extents in enumerate(sizes.T[::-1]):  # one at a time, for memory's sake
            ends = np.minimum(corners[:, 2 + axis], np.append(extents, np.inf)[image])
            inside &= ends > np.maximum(corners[:, axis], 0)
    return {
        'no part inside the image': boxed & ~inside,
        'thinner than one pixel': boxed & ((columns.box[:, 2] < 1) | (columns.box[:, 3] < 1)),
        'area is 0': (columns.area <= 0) & (columns.area != NO_NUMBER),
    }


def _describe_categories(
    coco: CocoFile,
    table: Table,
    class_names: Optional[Sequence[str]],
    numbering: Numbering,
    annotations: AnnotationFacts,
    faults: Faults,
    source: str,
) -> None:
    for code, name in coco.categories:
        number = coco.ids.original(code)
        if isinstance(number, int) and code != ABSENT:
            annotations.categories[number] = name
        else:
            what = 'a category has no id' if code == ABSENT else 'the id of a category is no whole number'
            faults.add(what, f'{source}: {name!r}' if code == ABSENT else f'{source}: {number!r}, {name!r}')
    names = [name for _, name in coco.categories]
    counts = np.bincount(table.category[table.category >= 0], minlength=len(names)).tolist()
    annotations.unused = [name for name, count in zip(names, counts) if not count]
    annotations.duplicate_names = [name for name, count in Counter(names).items() if count > 1]
    annotations.duplicate_category_ids = [
        coco.ids.original(code) for code, count in Counter(code for code, _ in coco.categories).items() if count > 1
    ]
    for code, count in counts_of(coco.annotations.category_id[table.category < 0]).items():
        number = coco.ids.original(code)
        if isinstance(number, int) and code != ABSENT:
            annotations.unnamed[number] = count
        elif code != ABSENT:
            faults.add('category_id names no category', f'{source}: {number!r}, {counted(count, "annotation")}')
    if class_names is None:
        return
    annotations.not_in_file = [name for name in class_names if name not in set(names)]
    by_label = {label: name for label, name in zip(numbering.labels, names) if label >= 0}
    annotations.renamed = [
        (label, by_label[label], name) for label, name in enumerate(class_names) if by_label.get(label, name) != name
    ]
    if numbering.labels:
        annotations.left_out_names = {
            name: counts[place] for place, name in enumerate(names) if numbering.labels[place] < 0
        }


def _describe_ids(coco: CocoFile, table: Table, annotations: AnnotationFacts) -> None:
    columns, images = coco.annotations, coco.images
    image_ids = np.array(images.id, np.int64)
    annotations.duplicate_image_ids = list(map(coco.ids.original, repeated(image_ids[image_ids != ABSENT])))
    if not coco.panoptic:
        annotations.duplicate_annotation_ids = list(map(coco.ids.original, repeated(columns.id[columns.id != ABSENT])))
    if len(set(images.name)) < len(images.name):
        twice = (name for name, count in Counter(images.name).items() if count > 1 and name)
        annotations.duplicate_files = [name for name, _ in zip(twice, range(EXAMPLES))]
    sizes = images.sizes
    without = {
        'images.id': (image_ids == ABSENT).sum(),
        'images.height': (sizes[:, 0] == NO_NUMBER).sum(),
        'images.width': (sizes[:, 1] == NO_NUMBER).sum(),
        'images.file_name': sum(not name for name in images.name),
        'annotations.id': (columns.id == ABSENT).sum(),
        'annotations.image_id': (columns.image_id == ABSENT).sum(),
        'annotations.category_id': (columns.category_id == ABSENT).sum(),
        'annotations.bbox': (~table.boxed).sum(),
        'annotations.area': (columns.area == NO_NUMBER).sum(),
    }
    annotations.without_key = {key: int(count) for key, count in without.items() if count}
