"""Scan of the YOLO data sets in a target."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np

from mmguard.findings import yolo
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.views import listing as named
from mmguard.findings.yolo import YoloFacts
from mmguard.formats.faults import NAMED, Examples
from mmguard.formats.files import FILES, is_image_name, walk
from mmguard.formats.format import Mapper, scan_here, split_into_chunks
from mmguard.formats.options import SPLITS
from mmguard.formats.other_files import looks_like_yolo
from mmguard.formats.table import EXAMPLES, Table, choose_boxed_images, facts_of, side_by_side
from mmguard.formats.yolo.data_yaml import (
    DataYaml,
    data_yaml_in,
    declares_names,
    find_unopened,
    is_data_yaml,
    names_beside,
    read_data_yaml,
)
from mmguard.formats.yolo.listing import Listing, label_folder, list_images, list_texts
from mmguard.formats.yolo.originals import find_original
from mmguard.formats.yolo.rows import (
    BOX,
    COLUMNS,
    CORNERS,
    IS_BEYOND,
    IS_IN_PIXELS,
    SLACK,
    TextSettings,
    TextsRead,
)
from mmguard.labels.instances import LABEL_REASON
from mmguard.language import Message

#: Number of label files per task: one takes a tenth of a millisecond.
_PER_TASK = 512


def scan_texts(
    listing: Listing,
    declared: DataYaml,
    root: str,
    num_classes: Optional[int] = None,
    mapper: Mapper = scan_here,
    on_files: Callable[[int], None] = lambda files: None,
) -> LabelFacts:
    """Read the label files of a YOLO data set, and the headers of its images. Never raise because of their content.

    Returns:
        LabelFacts: ``kind='instances'``; examples show fractions as in the label files.

    Raises:
        ValueError: There is nothing to read.
    """
    found = _Found(listing, root)
    settings = TextSettings(declared.kpt_shape)
    for read in mapper(split_into_chunks(listing.items(), _PER_TASK), settings):
        found.add(read)
        on_files(read.items)
    columns = found.columns()
    if _has_class_last(columns):
        columns = found.refuse(columns, 'the class seems to be the last number, not the first')
    if not (len(columns) or found.refused or found.faults or listing.faults or listing.elsewhere):
        counts = f'{len(listing.texts):,} label files (.txt) without a row, {listing.images:,} images'
        looked = sorted({label_folder(os.path.dirname(image)) for image in listing.bare})
        places = f'; ultralytics looks for them in {named([found.short(at) for at in looked], 3)}' if looked else ''
        raise ValueError(f'nothing was read: {counts}{places}')
    facts = _compute_facts(found, columns, declared, num_classes)
    assert facts.annotations is not None
    facts.annotations.yolo = _describe_rows(found, columns, declared, facts)
    facts.annotations.yolo.original = find_original(listing.texts, columns, declared.names, declared.root or root)
    for what, one in sorted(found.faults.items()):
        for number, of_image in one.first:
            listing.faults.add(what, found.name(number, of_image))
        listing.faults.count(what, one.count - len(one.first))
    facts.annotations.unreadable = listing.faults.to_dict()
    return facts


class _Found:
    """Results of the tasks in the order of the listing, independent of their order of completion."""

    def __init__(self, listing: Listing, root: str) -> None:
        self.listing = listing
        self._root = os.path.join(root, '')
        self._parts: List[np.ndarray] = []
        self.refused: Dict[str, Examples] = {}
        self.refused_in: Set[int] = set()
        self.faults: Dict[str, Examples] = {}
        self.faulty: Set[Tuple[int, bool]] = set()

    def add(self, result: TextsRead) -> None:
        self._parts.append(result.columns)
        self.refused_in |= result.refused_in
        self.faulty |= result.faulty
        for own, others in ((self.refused, result.refused), (self.faults, result.faults)):
            for what, one in others.items():
                own.setdefault(what, Examples(NAMED)).merge(one)

    def columns(self) -> np.ndarray:
        parts, self._parts = self._parts, []
        whole = np.concatenate([*parts, np.empty((0, COLUMNS))])
        order = np.argsort(whole[:, 0], kind='stable')
        return whole if (order[1:] > order[:-1]).all() else whole[order]

    def refuse(self, columns: np.ndarray, why: str) -> np.ndarray:
        """Move all rows to the refused ones and return an empty array."""
        for row in columns:
            label, left, top, right, bottom = row[2:7]
            numbers = (label, (left + right) / 2, (top + bottom) / 2, right - left, bottom - top)
            text = ' '.join(f'{number:g}' for number in numbers)
            self.refused.setdefault(why, Examples(NAMED)).add((int(row[0]), int(row[1]), text))
        self.refused_in |= set(columns[:, 0].astype(int).tolist())
        return columns[:0]

    def short(self, path: str) -> str:
        """Return a path relative to the root."""
        return path[len(self._root) :] if path.startswith(self._root) else path

    def name(self, number: int, of_image: bool = False) -> str:
        """Return the name of the file with an index."""
        texts = self.listing.texts
        if number >= len(texts):
            return self.short(self.listing.bare[number - len(texts)])
        return self.short(texts[number][1 if of_image else 0])

    def lines(self, columns: np.ndarray, flags: np.ndarray) -> List[str]:
        """Return ``'labels/a.txt: line 3: 0 0.5 ...'`` of the first rows."""
        return [f'{self.name(int(row[0]))}: line {int(row[1])}: {_describe_row(row)}' for row in columns[flags][:NAMED]]


def _has_class_last(columns: np.ndarray) -> bool:
    """Return True if rows are a box in pixels followed by its class: the last column has the fewest values."""
    if not len(columns) or (columns[:, 7] != BOX).any() or (columns[:, 8].astype(int) & IS_IN_PIXELS == 0).any():
        return False
    first, last = columns[:, 2], columns[:, 6] - columns[:, 4]
    is_number = (last >= 0).all() and (last % 1 == 0).all() and last.max() < first.max()
    return bool(is_number and len(np.unique(last)) < len(np.unique(first)))


def _describe_row(row: np.ndarray) -> str:
    """Return the class of a row and its two bounding corners as text."""
    return ', '.join((f'class {int(row[2])}', *(f'{number:.6g}' for number in row[3:7])))


def _compute_facts(found: _Found, columns: np.ndarray, declared: DataYaml, num_classes: Optional[int]) -> LabelFacts:
    """Return the facts that all annotation formats share."""
    label = columns[:, 2].astype(np.int64)
    classes = num_classes or declared.num_classes
    counted = classes is None
    if classes is None:
        classes = max(int(label.max(initial=0)) + 1, 1)
    # A class without a name is named by its number.
    names = declared.names or [str(number) for number in range(min(classes, 1 << 16))]
    annotations = AnnotationFacts(format='yolo', labelled_by='class list', names_from='', classes_counted=counted)
    annotations.categories = dict(enumerate(names))
    known = (label >= 0) & (label < len(names))
    beyond = (columns[:, 8].astype(int) & IS_BEYOND) > 0
    table = Table(
        images=[found.short(text) for text, _ in found.listing.texts],
        sizes=np.ones((len(found.listing.texts), 2)),
        categories=names,
        image=columns[:, 0].astype(np.int64),
        category=np.where(known, label, -1),
        label=label,
        corners=side_by_side(*columns[:, 3:7].T),
        boxed=~beyond,
        ignored=np.zeros(len(label), bool),
        left_out={'beyond the image': beyond},
        judged=~beyond,
        shows_size=False,
    )
    facts = facts_of(table, classes, declared.names, annotations)
    # These facts are about pixels and VOC: fractions have no one-pixel edge, and a full-image box is valid.
    annotations.inside_as, annotations.inside_unit, annotations.all_zero, annotations.inside_now = {}, 0, 0, 0
    left, top, right, bottom = table.corners.T
    low = ~beyond & ((left < -SLACK) | (top < -SLACK))
    high = ~beyond & ~low & ((right > 1 + SLACK) | (bottom > 1 + SLACK))
    annotations.negative_boxes = annotations.below_minus_one = int(low.sum())
    annotations.over_edge = int(high.sum())
    invalid = (label < 0) | (label >= classes)
    no_area = (right <= left) | (bottom <= top)
    examples = {
        'negative': low,
        'over_edge': high,
        LABEL_REASON: invalid & ~beyond & ~no_area,
        'box_no_area': no_area & ~beyond,
    }
    annotations.box_examples = {
        reason: found.lines(columns, flags)[:EXAMPLES] for reason, flags in examples.items() if flags.any()
    }
    table.path_of = lambda place: found.listing.texts[place][1]
    facts.boxed = choose_boxed_images(table, {**examples, 'beyond': beyond})
    annotations.images_without_target = annotations.images_kept_empty = 0  # ultralytics trains on backgrounds
    listing = found.listing
    annotations.missing = len(listing.missing)
    annotations.missing_files = [found.short(path) for path in listing.missing[:EXAMPLES]]
    annotations.images = max(annotations.images, listing.images + annotations.missing)
    return facts


def _describe_rows(found: _Found, columns: np.ndarray, declared: DataYaml, facts: LabelFacts) -> YoloFacts:
    """Return the facts specific to YOLO labels."""
    listing = found.listing
    widths, flags = columns[:, 7].astype(int), columns[:, 8].astype(int)
    boxes = widths == BOX
    refused = sum(one.count for one in found.refused.values())
    about = YoloFacts(_find_task(widths, declared), len(columns) + refused)
    about.images, about.in_pixels = listing.images, int(((flags & IS_IN_PIXELS) > 0).sum())
    left, top, right, bottom = columns[:, 3:7].T
    about.turned = int((((flags & IS_BEYOND) > 0) & ((right < left) | (bottom < top))).sum())
    about.reasons = {
        why: one.count for why, one in sorted(found.refused.items(), key=lambda item: (-item[1].count, item[0]))
    }
    others = boxes if about.task in (yolo.OUTLINES, yolo.CORNERS) else ~boxes & (about.task == yolo.BOXES)
    kinds = {
        yolo.BEYOND: (flags & IS_BEYOND) > 0,
        yolo.OTHER_TASK: others,
    }
    for kind, shown in kinds.items():
        if shown.any():
            about.counts[kind], about.faults[kind] = int(shown.sum()), found.lines(columns, shown)
    rows = [(at, line, why, row) for why, one in found.refused.items() for at, line, row in one.first]
    before: Counter = Counter()
    ranked = []
    for at, line, why, row in sorted(rows):  # name every label file once before naming one twice
        ranked.append((before[at], at, line, f'{found.name(at)}: line {line}: {why}: {row}'))
        before[at] += 1
    named = [text for *_, text in sorted(ranked)[:NAMED]]
    bare = [found.short(path) for path in listing.bare[:NAMED]]
    about.elsewhere = {
        found.short(folder): (found.short(label_folder(folder)), found.short(place), number)
        for folder, (place, number) in listing.elsewhere.items()
    }
    alone = [found.short(path) for path in listing.without_image.first]
    for kind, count, places in (
        (yolo.ROWS, refused, named),
        (yolo.NO_LABEL, len(listing.bare), bare),
        (yolo.NO_IMAGE, listing.without_image.count, alone),
        (yolo.DECLARED, len(declared.faults), [f'{found.short(declared.file)}: {why}' for why in declared.faults]),
    ):
        if count:
            about.counts[kind], about.faults[kind] = count, places
    label = columns[:, 2]
    kinds[yolo.CLASS] = (label < 0) | (label >= facts.num_classes)
    holders = {kind: set(columns[shown, 0].astype(int).tolist()) for kind, shown in kinds.items()}
    holders[yolo.ROWS] = found.refused_in
    about.left_out = len(holders[yolo.ROWS] | holders[yolo.BEYOND] | holders[yolo.CLASS])
    about.files = {kind: [found.name(number) for number in sorted(some)] for kind, some in holders.items() if some}
    if found.faulty:
        about.files[yolo.UNREADABLE] = [found.name(*one) for one in sorted(found.faulty)]
    return about


def _find_task(widths: np.ndarray, declared: DataYaml) -> str:
    """Return the task of most rows."""
    if declared.kpt_shape is not None:
        return yolo.KEYPOINTS
    outlines = widths != BOX
    if 2 * int(outlines.sum()) <= len(widths):
        return yolo.BOXES
    # Oriented boxes have four points in all rows of a data set.
    return yolo.CORNERS if (widths[outlines] == CORNERS).all() else yolo.OUTLINES


#: Number of folders, and of files in each, to look at before a target is rejected.
_FOLDERS, _FILES = 50, 200


@dataclass
class YoloSet:
    """One data set that has not been read yet."""

    name: str  #: Name of the split, or the target.
    target: str  #: Folder, data.yaml, list of images or label file, as given.
    root: str  #: Folder that file names are relative to.
    declared: DataYaml  #: Names, number of classes, keypoints.
    places: Optional[List[str]] = None  #: Folders and lists of images; ``None``: the content of the root.
    images: Optional[str] = None  #: Folder of the images, if given by the user.
    notes: List[str] = field(default_factory=list)  #: Notes for the user.

    def listing(self) -> Listing:
        listing = list_texts(self.root, self.images) if self.places is None else list_images(self.places)
        for path in find_unopened(self.root):
            listing.faults.add('cannot be read: it is not a regular file', os.path.relpath(path, self.root))
        return listing

    def read(
        self,
        num_classes: Optional[int] = None,
        mapper: Mapper = scan_here,
        on_files: Callable[[int], None] = lambda files: None,
    ) -> LabelFacts:
        """Read the data set; see :func:`scan_texts`."""
        root = self.root if os.path.isdir(self.root) else os.path.dirname(self.root)
        facts = scan_texts(self.listing(), self.declared, root, num_classes, mapper, on_files)
        assert facts.annotations is not None
        facts.annotations.sources = [self.target]
        return facts


def is_yolo(target: str) -> bool:
    """Return True if a target is a data.yaml, an image list, a label file, or a folder with the first or the last."""
    if os.path.isdir(target):
        return bool(data_yaml_in(target)) or _has_texts(os.path.abspath(target))
    root = os.path.abspath(target)
    if is_data_yaml(target) or (declares_names(target) and _has_texts(os.path.dirname(root))):
        return True
    return target.lower().endswith('.txt') and (_lists_images(root) or looks_like_yolo([root]))


def yolo_sets(target: str, splits: Sequence[str] = SPLITS, images: Optional[str] = None) -> List[YoloSet]:
    """Return the data sets of a YOLO target; empty if its data.yaml has no images of these splits."""
    is_folder = os.path.isdir(target)
    file = data_yaml_in(target) if is_folder else target if is_data_yaml(target) else ''
    if file:
        return _list_declared(target, read_data_yaml(file), splits)
    root = os.path.abspath(target)
    if is_folder:
        return [_make_set_without_yaml(target, root, names_beside(root), images)]
    folder = os.path.dirname(root)
    if declares_names(target):
        return [_make_set_without_yaml(target, folder, read_data_yaml(target), images)]
    places = [root] if _lists_images(root) else None
    return [_add_note(YoloSet(target, target, folder if places else root, names_beside(folder), places))]


def _make_set_without_yaml(target: str, root: str, declared: DataYaml, images: Optional[str]) -> YoloSet:
    return _add_note(YoloSet(target, target, root, declared, None, None if images is None else os.path.abspath(images)))


def _add_note(found: YoloSet) -> YoloSet:
    note = Message('YOLO labels without names: every class id counts as a class unless --num-classes is given')
    if found.declared.file:
        note = Message('YOLO labels, names: {file}', file=found.declared.file)
    found.notes.append(note)
    return found


def _list_declared(target: str, declared: DataYaml, splits: Sequence[str]) -> List[YoloSet]:
    found: List[YoloSet] = []
    for split in splits:
        places = [_resolve_place(declared, path) for path in declared.splits.get(split, [])]
        same = next((one for one in found if places and one.places == places), None)
        if same is not None:
            same.name += f', {split}'
        elif places:
            found.append(YoloSet(split, target, declared.root, declared, places))
    for one in found[:1]:
        one.notes.append(Message('YOLO labels, as {file} says', file=declared.file))
    return found


def _resolve_place(declared: DataYaml, path: str) -> str:
    """Return the path of a folder or list of images; like ultralytics, drop ``../`` if the path does not exist."""
    roots = (declared.root, os.path.dirname(os.path.abspath(declared.file)))
    ways = [path, path[3:]] if path.startswith('../') else [path]
    places = [os.path.abspath(os.path.join(root, way)) for root in roots for way in ways]
    return next(filter(os.path.exists, places), places[0])


def _has_texts(root: str) -> bool:
    """Return True if a folder contains label files with rows, and no other labels."""
    texts: List[str] = []
    for number, (folder, names) in enumerate(walk(root, lambda at, error: None)):
        beside = {name.rpartition('.')[0] for name in names if is_image_name(name)}
        here = [name for name in names if name.endswith('.txt')]
        paired = [name for name in here if name[:-4] in beside]
        if beside and not paired and 'images' not in os.path.relpath(folder, root).replace(os.sep, '/').split('/'):
            return False  # probably label maps
        texts += [os.path.join(folder, name) for name in (paired or here)[: _FILES - len(texts)]]
        if number >= _FOLDERS or len(texts) >= _FILES:
            break
    return bool(texts) and looks_like_yolo(texts)


def _lists_images(path: str) -> bool:
    try:
        with FILES.open(path) as file:
            lines = file.read(1 << 14).decode('utf-8', 'replace').splitlines()
    except (OSError, ValueError):
        return False
    return any(is_image_name(os.path.basename(line.strip())) for line in lines[:20])
