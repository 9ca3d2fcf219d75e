"""Scan of a YOLO data set, and comparison with the COCO file that it may have been converted from."""

from __future__ import annotations

import os
from collections import Counter
from typing import Callable, Dict, List, Optional, Tuple
from typing import Counter as CounterOf

import numpy as np

from mmguard.facts import yolo
from mmguard.facts.labels import AnnotationFacts, BoxFacts, LabelFacts
from mmguard.facts.yolo import Original, YoloFacts
from mmguard.formats.coco import find_coco_files
from mmguard.formats.coco.file import read_coco
from mmguard.formats.coco.records import CocoFile
from mmguard.formats.faults import MAX_PLACES, Faults
from mmguard.formats.format import Mapper, scan_here, split_into_chunks
from mmguard.formats.table import EXAMPLES, Table, choose_boxed_images, facts_of, find_off_axis, stack_columns
from mmguard.formats.yolo.data_yaml import DataYaml
from mmguard.formats.yolo.listing import YoloListing, get_label_folder
from mmguard.formats.yolo.rows import BOX, COLUMNS, CORNERS, IS_BEYOND, IS_IN_PIXELS, SLACK, TextsRead, TextTask
from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.numbering import COCO_IDS
from mmguard.text import quantity

#: Number of label files per task: reading a file takes a tenth of a millisecond.
_PER_TASK = 512


def scan_texts(
    listing: YoloListing,
    declared: DataYaml,
    root: str,
    num_classes: Optional[int] = None,
    mapper: Mapper = scan_here,
    on_files: Callable[[int], None] = lambda files: None,
) -> LabelFacts:
    """Read the label files of a YOLO data set, and the headers of its images. Invalid content is recorded.

    Returns:
        LabelFacts: ``kind='instances'``; examples show fractions as in the label files.

    Raises:
        ValueError: Neither rows nor faults were found.
    """
    found = _ScanResults(listing, root)
    settings = TextTask(declared.kpt_shape)
    for read in mapper(split_into_chunks(listing.items(), _PER_TASK), settings):
        found.merge(read)
        on_files(read.items)
    columns = found.join_columns()
    if _has_class_last(columns):
        columns = found.refuse_all(columns, 'the class seems to be the last number, not the first')
    if not (len(columns) or found.refused or found.faults or listing.faults or listing.elsewhere):
        files = quantity(len(listing.texts), 'label file')
        counts = f'{files} (.txt) without a row, {quantity(listing.images, "image")}'
        looked = sorted({get_label_folder(os.path.dirname(image)) for image in listing.bare})
        folders, more = ', '.join(map(found.shorten_path, looked[:3])), len(looked) - 3
        folders += f' and {more:,} more' if more > 0 else ''
        places = f'; ultralytics looks for label files in {folders}' if looked else ''
        raise ValueError(f'nothing was read: {counts}{places}')
    facts = _compute_facts(found, columns, declared, num_classes)
    assert facts.annotations is not None
    facts.yolo = _describe_rows(found, columns, declared, facts)
    facts.yolo.original = find_original(listing.texts, columns, declared.names, declared.root or root)
    for what, one in sorted(found.faults.items()):
        for number, of_image in one.first:
            listing.faults.add(what, found.name(number, of_image))
        listing.faults.count(what, one.count - len(one.first))
    facts.annotations.unreadable = listing.faults.to_dict()
    return facts


class _ScanResults(TextsRead):
    """Rows and faults of all tasks, in the order of the listing even if tasks end in another order."""

    def __init__(self, listing: YoloListing, root: str) -> None:
        super().__init__()
        self.listing = listing
        self._root = os.path.join(root, '')

    def join_columns(self) -> np.ndarray:
        whole = np.concatenate([*self.columns, np.empty((0, COLUMNS))])
        self.columns.clear()
        order = np.argsort(whole[:, 0], kind='stable')
        return whole if (order[1:] > order[:-1]).all() else whole[order]

    def refuse_all(self, columns: np.ndarray, reason: str) -> np.ndarray:
        """Refuse all rows for the same reason, and return an empty array."""
        for row in columns:
            label, left, top, right, bottom = row[2:7]
            numbers = (label, (left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
            self.refuse(reason, int(row[0]), int(row[1]), ' '.join(f'{number:g}' for number in numbers))
        return columns[:0]

    def shorten_path(self, path: str) -> str:
        """Return a path relative to the root."""
        return path[len(self._root) :] if path.startswith(self._root) else path

    def name(self, number: int, of_image: bool = False) -> str:
        """Return the path of label file ``number``, or of its image, relative to the root."""
        texts = self.listing.texts
        if number >= len(texts):
            return self.shorten_path(self.listing.bare[number - len(texts)])
        return self.shorten_path(texts[number][1 if of_image else 0])

    def format_rows(self, columns: np.ndarray, flags: np.ndarray) -> List[str]:
        """Return a text for each of the first rows: ``'labels/a.txt: line 3: class 0, 0.1, ...'``."""
        return [
            f'{self.name(int(row[0]))}: line {int(row[1])}: class {int(row[2])}, '
            + ', '.join(f'{number:.6g}' for number in row[3:7])
            for row in columns[flags][:MAX_PLACES]
        ]

    def format_refused(self) -> List[str]:
        """Return texts of up to ``MAX_PLACES`` refused rows: first one row of each label file, then second rows."""
        rows = [(at, line, why, row) for why, one in self.refused.items() for at, line, row in one.first]
        before: Counter = Counter()
        ranked = []
        for at, line, why, row in sorted(rows):
            ranked.append((before[at], at, line, f'{self.name(at)}: line {line}: {why}: {row}'))
            before[at] += 1
        return [text for *_, text in sorted(ranked)[:MAX_PLACES]]


def _has_class_last(columns: np.ndarray) -> bool:
    """Return True if rows look like pixels, then a class: the last column has fewer distinct values than the first."""
    if not len(columns) or (columns[:, 7] != BOX).any() or (columns[:, 8].astype(int) & IS_IN_PIXELS == 0).any():
        return False
    first, last = columns[:, 2], columns[:, 6] - columns[:, 4]
    is_number = (last >= 0).all() and (last % 1 == 0).all() and last.max() < first.max()
    return bool(is_number and len(np.unique(last)) < len(np.unique(first)))


def _compute_facts(
    results: _ScanResults, columns: np.ndarray, declared: DataYaml, num_classes: Optional[int]
) -> LabelFacts:
    """Return the facts that all annotation formats share."""
    label = columns[:, 2].astype(np.int64)
    classes = num_classes or declared.num_classes
    counted = classes is None
    if classes is None:
        classes = max(int(label.max(initial=0)) + 1, 1)
    # A class without a name is named by its number.
    names = declared.names or [str(number) for number in range(min(classes, 1 << 16))]
    annotations = AnnotationFacts(
        'yolo', dict(enumerate(names)), labelled_by='class list', names_from='', classes_counted=counted
    )
    known = (label >= 0) & (label < len(names))
    beyond = (columns[:, 8].astype(int) & IS_BEYOND) > 0
    table = Table(
        images=[results.shorten_path(text) for text, _ in results.listing.texts],
        sizes=np.ones((len(results.listing.texts), 2)),
        categories=names,
        image=columns[:, 0].astype(np.int64),
        category=np.where(known, label, -1),
        label=label,
        corners=stack_columns(*columns[:, 3:7].T),
        boxed=~beyond,
        ignored=np.zeros(len(label), bool),
        left_out={'beyond the image': beyond},
        judged=~beyond,
        shows_size=False,
    )
    facts = facts_of(table, classes, declared.names, annotations)
    # The other facts are about pixels and VOC: fractions have no one-pixel edge, and a full-image box is valid.
    boxes = facts.boxes = BoxFacts(turned_boxes=facts.boxes.turned_boxes)
    left, top, right, bottom = table.corners.T
    low = ~beyond & ((left < -SLACK) | (top < -SLACK))
    high = ~beyond & ~low & ((right > 1 + SLACK) | (bottom > 1 + SLACK))
    boxes.negative_boxes = boxes.below_minus_one = int(low.sum())
    boxes.over_edge = int(high.sum())
    invalid = (label < 0) | (label >= classes)
    no_area = (right <= left) | (bottom <= top)
    examples = {
        'negative': low,
        'over_edge': high,
        LABEL_REASON: invalid & ~beyond & ~no_area,
        'box_no_area': no_area & ~beyond,
    }
    boxes.box_examples = {
        reason: results.format_rows(columns, flags)[:EXAMPLES] for reason, flags in examples.items() if flags.any()
    }
    table.path_of = lambda place: results.listing.texts[place][1]
    facts.boxed = choose_boxed_images(table, {**examples, 'beyond': beyond})
    # Ultralytics trains on backgrounds.
    annotations.images_without_target = annotations.images_spoiled = annotations.images_kept_empty = 0
    listing = results.listing
    annotations.missing = len(listing.missing)
    annotations.missing_files = [results.shorten_path(path) for path in listing.missing[:EXAMPLES]]
    annotations.images = max(annotations.images, listing.images + annotations.missing)
    return facts


def _describe_rows(results: _ScanResults, columns: np.ndarray, declared: DataYaml, labels: LabelFacts) -> YoloFacts:
    """Return the facts specific to YOLO labels."""
    listing, shorten_path = results.listing, results.shorten_path
    label, flags = columns[:, 2], columns[:, 8].astype(int)
    is_box, beyond, in_pixels = columns[:, 7] == BOX, (flags & IS_BEYOND) > 0, (flags & IS_IN_PIXELS) > 0
    left, top, right, bottom = columns[:, 3:7].T
    labels.boxes.off_axis = find_off_axis(columns[:, 3:5], columns[:, 5:7])
    refused = {why: one.count for why, one in results.refused.items()}
    about = YoloFacts(
        _find_task(columns[:, 7].astype(int), declared),
        rows=len(columns) + sum(refused.values()),
        reasons=dict(sorted(refused.items(), key=lambda item: (-item[1], item[0]))),
        in_pixels=int(in_pixels.sum()),
        turned=int((beyond & ((right < left) | (bottom < top))).sum()),
        unswapped=declared.unswapped,
        images=listing.images,
        elsewhere={
            shorten_path(folder): (shorten_path(get_label_folder(folder)), shorten_path(place), number)
            for folder, (place, number) in listing.elsewhere.items()
        },
    )
    others = is_box if about.task in (yolo.OUTLINES, yolo.CORNERS) else ~is_box & (about.task == yolo.BOXES)
    kinds = {yolo.BEYOND: beyond, yolo.OTHER_TASK: others}
    found = {kind: (int(shown.sum()), results.format_rows(columns, shown)) for kind, shown in kinds.items()}
    found[yolo.ROWS] = sum(refused.values()), results.format_refused()
    found[yolo.NO_LABEL] = len(listing.bare), list(map(shorten_path, listing.bare[:MAX_PLACES]))
    found[yolo.NO_IMAGE] = listing.without_image.count, list(map(shorten_path, listing.without_image.first))
    said = [f'{shorten_path(declared.file)}: {why}' for why in declared.faults]
    found[yolo.DECLARED] = len(said), said
    about.counts = {kind: count for kind, (count, _) in found.items() if count}
    about.faults = {kind: places for kind, (count, places) in found.items() if count}
    kinds[yolo.CLASS] = (label < 0) | (label >= labels.num_classes)
    holders = {kind: set(columns[shown, 0].astype(int).tolist()) for kind, shown in kinds.items()}
    holders[yolo.ROWS] = results.refused_in
    about.left_out = len(holders[yolo.ROWS] | holders[yolo.BEYOND] | holders[yolo.CLASS])
    about.files = {kind: [results.name(number) for number in sorted(some)] for kind, some in holders.items() if some}
    if results.faulty:
        about.files[yolo.UNREADABLE] = [results.name(*one) for one in sorted(results.faulty)]
    return about


def _find_task(widths: np.ndarray, declared: DataYaml) -> str:
    """Return the kind of most rows, as in ``YoloFacts.task``; always keypoints if data.yaml sets ``kpt_shape``."""
    if declared.kpt_shape is not None:
        return yolo.KEYPOINTS
    outlines = widths != BOX
    if 2 * int(outlines.sum()) <= len(widths):
        return yolo.BOXES
    # Oriented boxes have four points in all rows of a data set.
    return yolo.CORNERS if (widths[outlines] == CORNERS).all() else yolo.OUTLINES


#: (Index of the label file, label or id) -> count.
Pairs = CounterOf[Tuple[int, int]]

#: Minimum share of the rows whose image is in the COCO file, and of the COCO objects in these images that have a
#: row.
_SHARED, _SAME = 0.5, 0.99
#: Maximum size in bytes of a COCO file that is compared.
_LARGEST = 1 << 27


def find_original(texts: List[Tuple[str, str]], columns: np.ndarray, names: List[str], root: str) -> Optional[Original]:
    """Find the COCO file, in or next to the data set, from which the label files seem to have been converted.

    Return the file and the counts that differ, or ``None`` if no file is found or if the labels agree.

    Args:
        texts (list): Pairs of label file and image.
        columns (ndarray): Rows of the label files, (N, C): index of the file, line, label, ...
        names (list[str]): Class names.
        root (str): Folder of the data set.
    """
    stems = {os.path.splitext(os.path.basename(text))[0]: number for number, (text, _) in enumerate(texts)}
    for file in [*find_coco_files(root), *find_coco_files(os.path.dirname(os.path.abspath(root)))] if names else ():
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
    """Count annotations by (index of the label file, category id). Exclude crowds, which converters leave out."""
    rows = coco.annotations
    wanted = np.isin(rows.image_id, list(images)) & ~rows.crowd
    return Counter((images[image], code) for image, code in zip(rows.image_id[wanted], rows.category_id[wanted]))


def _renumber(pairs: Pairs, table: Dict[int, int]) -> Pairs:
    return Counter({(place, table[code]): number for (place, code), number in pairs.items() if code in table})


def _count_label(pairs: Pairs, label: int) -> int:
    return sum(number for (_, one), number in pairs.items() if one == label)
