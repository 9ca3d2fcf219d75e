"""Scan of COCO and LVIS JSON files, and selection of a few images to test with the framework's data set class."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.facts.labels import NO_LABEL_MAP, AnnotationFacts, CocoFacts, LabelFacts, LoaderFacts
from mmguard.files.containment import find_inside
from mmguard.formats.coco.file import read_coco
from mmguard.formats.coco.masks import MASK_FAULTS, OTHER_SIZE, find_mask_faults
from mmguard.formats.coco.panoptic import describe_segments, find_png_folder
from mmguard.formats.coco.records import MISSING_ID, CocoFile
from mmguard.formats.coco.rfdetr import number_by_rfdetr
from mmguard.formats.faults import Faults
from mmguard.formats.files import find_missing_files, find_size_mismatches, select_spread
from mmguard.formats.table import (
    EXAMPLES,
    LARGEST_SIDE,
    NO_NUMBER,
    UNLISTED_REASON,
    WRONG_SIZE_FAULT,
    Table,
    count_codes,
    facts_of,
    find_places,
    find_repeated,
    list_twice,
    stack_columns,
)
from mmguard.labels.numbering import COCO, COCO_IDS, FRAMEWORKS, IDS
from mmguard.text import quantity, shorten

#: Largest id that can be a label; codes below ``-LARGEST_LABEL`` are those of ids that are strings or missing.
LARGEST_LABEL = 1 << 53
#: Maximum number of unused ids; if there are more, ids are not labels, as no model has so many outputs.
_MOST_UNUSED = 5000
#: Shorter side, in pixels, below which mmdet's own configs drop images.
MIN_SIZE = 32
#: Largest file, in bytes, whose RLE sizes are always read.
_SMALL_FILE = 64 << 20
_RECORD_ADVICE = (
    'Correct the listed entries, or export the file again. "images", "annotations" and "categories" must be lists, ids '
    'and the four values of a box must be numbers, iscrowd must be 0 or 1, and names must be strings.'
)


class Numbering(NamedTuple):
    """Mapping from the categories of a COCO file to labels."""

    by: str  #: Value of ``AnnotationFacts.labelled_by``.
    labels: List[int]  #: Label of each category of the file; -1 for a category without label.
    names: List[str]  #: Names of the labels; empty if the labels have no names.


def scan_coco(path: str, num_classes: Optional[int] = None, **settings: Any) -> LabelFacts:
    """Read a file of COCO's format (LVIS, Objects365, panoptic, ...). Invalid content is recorded, and never raises.

    With ``class_names``, labels are those of mmdet: it numbers the categories of these names in the order of the file.
    (The order of ``class_names`` has no effect; ``coco.renamed`` records names that differ.) mmdet silently drops all
    other categories; their annotations are counted in ``annotations.left_out``. Without ``class_names``, the meaning
    of a label depends on the framework: pass ``labels`` or ``framework``. If neither is given, categories are numbered
    in the order of the file, and rule MG138 describes the effect in frameworks that train on the ids.

    Args:
        num_classes (int, optional): Number of classes. Default: the number of names, or the number that ids require.
        settings: Other fields of :class:`CocoScan`.

    Returns:
        LabelFacts: ``kind='instances'``. Histogram and values count what training sees, without crowds and
        annotations that the loader drops. ``files`` are images.
    """
    return CocoScan(path, num_classes, **settings).collect_facts()


@dataclass
class CocoScan:
    """Scan of a COCO file: its settings, and the data read from the file."""

    path: str
    num_classes: Optional[int] = None
    class_names: Optional[Sequence[str]] = None
    images: Optional[str] = None  #: Folder of the images; if given, missing files are reported.
    min_size: int = MIN_SIZE  #: Images with a shorter side count as small, ``filter_cfg['min_size']`` of the data set.
    #: Data set of mmdet: ``'coco'``, ``'panoptic'``, ``'lvis'`` (every category of the file has a label, listed or not)
    #: or ``'lvis_url'`` (LVIS 1.0, whose images are named by ``coco_url``).
    family: str = 'coco'
    labels: Optional[str] = None  #: ``'positions'`` or ``'ids'``. Default: those of the framework.
    framework: Optional[str] = None  #: A key of :data:`~mmguard.labels.numbering.FRAMEWORKS`.
    #: Loads a few images with the config's own data set; called only if the file has no faults.
    ask_loader: Optional[Callable[[List[CocoSample]], LoaderFacts]] = None
    masks: bool = False  #: Check all masks; of a panoptic file, all PNGs instead of a sample.
    maps: Optional[Tuple[str, str]] = None  #: Folder and suffix of label maps; missing files are reported.
    segments: Optional[str] = None  #: Folder of the PNGs of a panoptic file. Default: the folder named like the file.

    def __post_init__(self) -> None:
        self.faults, self.source = Faults(), os.path.basename(self.path) or self.path
        is_small = os.path.isfile(self.path) and os.path.getsize(self.path) <= _SMALL_FILE
        masks = 'all' if self.masks else 'sizes' if is_small else ''
        self.lvis, by_url = self.family.startswith('lvis'), self.family == 'lvis_url'
        self.coco = read_coco(self.path, self.source, self.faults, by_url, masks)
        self.details = CocoFacts(framework=self.framework or '', masks_read=self.masks)
        self.about = AnnotationFacts(
            format='lvis' if self.lvis else 'coco',
            min_size=self.min_size,
            sources=[self.path],
            record_advice=_RECORD_ADVICE,
            classes_counted=self.num_classes is None and self.class_names is None,
            names_from='' if self.lvis else 'categories',
        )
        by_rfdetr = self.framework == 'rf-detr' and self.labels != COCO
        self.numbering = self._number_by_rfdetr() if by_rfdetr else self._number_categories()
        self.about.labelled_by = self.numbering.by
        if self.numbering.by == 'category id' and self.framework is not None:
            self.details.min_label = FRAMEWORKS[self.framework].min_label
        self.table = self._build_table()

    def collect_facts(self) -> LabelFacts:
        coco, table, faults, about, images = self.coco, self.table, self.faults, self.about, self.images
        self._describe_categories()
        self._describe_ids()
        self._describe_sizes()
        if not coco.panoptic and (self.masks or np.isfinite(coco.annotations.mask['size']).any()):
            self._describe_masks()
        if images is not None:
            names = [name for name in coco.images.name if name]
            about.missing, about.missing_files = find_missing_files(images, names, faults)
            about.sizes_compared, about.size_mismatches = find_size_mismatches(images, coco.images.name, table.sizes)
            table.path_of = lambda place: find_inside(images, table.images[place])
        if coco.panoptic:
            folder = find_png_folder(self.path) if self.segments is None else self.segments
            if folder:
                describe_segments(coco, folder, self.masks, self.details, faults, self.source)
        if self.maps is not None:
            names = [name.rsplit('.', 1)[0] + self.maps[1] for name in coco.images.name if name]
            for name in find_missing_files(self.maps[0], names, faults)[1]:
                faults.add(NO_LABEL_MAP, os.path.join(self.maps[0], name))
        samples = select_samples(coco) if self.ask_loader is not None and not faults and not about.without_key else []
        del coco, self.coco  # half of the memory, and not needed for counting
        num_classes = self.num_classes
        if num_classes is None and self.numbering.by == 'category id':
            num_classes = max(_count_needed_outputs(about) - self.details.spare, 1)
        facts = facts_of(table, num_classes, self.numbering.names, about, self.details)
        about.unreadable = faults.to_dict()
        if self.ask_loader is not None and samples and not facts.values and not facts.reasons:
            facts.loader = self.ask_loader(samples)
        return facts

    def _number_categories(self) -> Numbering:
        coco, class_names = self.coco, self.class_names
        names = [name for _, name in coco.categories]
        if class_names is not None or self.lvis:
            listed = set(names if self.lvis else class_names or ())
            codes = [code for code, name in coco.categories if name in listed]
            return Numbering('file order', _list_labels(coco, codes), list(class_names or (names if self.lvis else ())))
        known = FRAMEWORKS.get(self.framework or '')
        labels = self.labels or (known.labels if known else None)
        if labels == IDS:
            return Numbering('category id', [], [])
        if labels == COCO:
            known_ids = [coco.ids.get_original(code) for code, _ in coco.categories]
            table = {number: label for label, number in enumerate(COCO_IDS)}
            return Numbering('COCO ids', [table.get(number, -1) for number in known_ids], [])
        ordered = sorted(coco.categories, key=lambda one: one[0]) if known and known.ascending else coco.categories
        by = 'unknown' if labels is None else 'file order'
        return Numbering(by, _list_labels(coco, [code for code, _ in ordered]), [name for _, name in ordered])

    def _number_by_rfdetr(self) -> Numbering:
        coco, spare = self.coco, FRAMEWORKS['rf-detr'].spare
        outputs = self.num_classes and self.num_classes + spare
        self.details.spare = spare
        labels, codes = number_by_rfdetr(coco, self.path, self.labels, outputs, self.details)
        if labels == IDS:
            return Numbering('category id', [], [])
        names, numbers = dict(coco.categories), _list_labels(coco, codes)
        used = set(coco.annotations.category_id.tolist())
        for (code, name), label in zip(coco.categories, numbers):
            if label < 0 and code in used:
                what = 'RF-DETR has no label for a category that no annotation of train uses (KeyError)'
                self.faults.add(what, shorten(name))
        by = 'unknown' if labels is None else 'file order'
        return Numbering(by, numbers, [names.get(code, '') for code in codes])

    def _build_table(self) -> Table:
        coco, columns, numbering = self.coco, self.coco.annotations, self.numbering
        sizes = coco.images.sizes
        image = find_places(columns.image_id, np.array(coco.images.id, np.int64))
        image[columns.image_id == MISSING_ID] = -1
        category = find_places(columns.category_id, np.array([code for code, _ in coco.categories], np.int64))
        category[columns.category_id == MISSING_ID] = -1
        left, top, width, height = columns.box.T
        boxed = ~((left == NO_NUMBER) & (top == NO_NUMBER) & (width == NO_NUMBER) & (height == NO_NUMBER))
        with np.errstate(over='ignore', invalid='ignore'):
            corners = stack_columns(left, top, left + width, top + height)
        if numbering.by == 'category id':
            labels = columns.category_id
            # Ids that are not integers cannot be trained as labels; they are reported as faults.
            unlisted = labels < -LARGEST_LABEL
        else:
            labels = np.array([*numbering.labels, -1], np.int64)[category]
            unlisted = labels < 0
        left_out = {UNLISTED_REASON: unlisted, 'ignore is set': columns.ignore}
        if numbering.by not in ('category id', 'COCO ids') and self.framework in (None, 'mmdet'):
            left_out.update(_find_dropped_by_mmdet(coco, image, corners, boxed, sizes))
        return Table(
            images=[
                name or f'image {coco.ids.get_original(code)}' for code, name in zip(coco.images.id, coco.images.name)
            ],
            sizes=sizes,
            categories=[str(coco.ids.get_original(code)) for code, _ in coco.categories],
            image=image,
            category=category,
            label=labels,
            corners=corners,
            boxed=boxed,
            ignored=columns.crowd,
            left_out=left_out,
            judged=~unlisted & ~columns.ignore,
        )

    def _describe_categories(self) -> None:
        coco, table, about, numbering, class_names = self.coco, self.table, self.about, self.numbering, self.class_names
        for code, name in coco.categories:
            number = coco.ids.get_original(code)
            if isinstance(number, int) and code != MISSING_ID:
                about.categories[number] = name
            else:
                is_missing = code == MISSING_ID
                what = 'a category has no id' if is_missing else 'the id of a category is not an integer'
                named = shorten(name) if is_missing else f'{shorten(number)}, {shorten(name)}'
                self.faults.add(what, f'{self.source}: {named}')
        names = [name for _, name in coco.categories]
        about.duplicate_names = list_twice(names)
        twice = list_twice(code for code, _ in coco.categories)
        self.details.duplicate_category_ids = list(map(coco.ids.get_original, twice))
        for code, count in count_codes(coco.annotations.category_id[table.category < 0]).items():
            number = coco.ids.get_original(code)
            if isinstance(number, int) and code != MISSING_ID:
                self.details.unnamed[number] = count
                rows = np.flatnonzero((table.category < 0) & (coco.annotations.category_id == code))
                self.details.unnamed_examples += self._list_places(rows)
            elif code != MISSING_ID:
                self.faults.add(
                    'category_id does not name a category',
                    f'{self.source}: {shorten(number)}, {quantity(count, "annotation")}',
                )
        if class_names is None:
            return
        by_label = {label: name for label, name in zip(numbering.labels, names) if label >= 0}
        self.details.renamed = [
            (label, by_label[label], name)
            for label, name in enumerate(class_names)
            if by_label.get(label, name) != name
        ]
        if numbering.labels:
            counts = np.bincount(table.category[table.category >= 0], minlength=len(names)).tolist()
            about.left_out_names = {
                name: counts[place] for place, name in enumerate(names) if numbering.labels[place] < 0
            }

    def _describe_masks(self) -> None:
        """Count the mask faults of annotations that a loader keeps; without ``masks``, only RLEs of a wrong size."""
        table, details = self.table, self.details
        loaded = table.image >= 0
        for flags in table.left_out.values():
            loaded &= ~flags
        codes = np.where(loaded, find_mask_faults(self.coco.annotations.mask, table.extents), 0)
        counted = codes > 0 if self.masks else codes == OTHER_SIZE
        for code in np.unique(codes[counted]).tolist():
            rows = np.flatnonzero(codes == code)
            details.mask_faults[MASK_FAULTS[code]] = len(rows)
            details.mask_examples[MASK_FAULTS[code]] = self._list_places(rows)

    def _list_places(self, rows: np.ndarray) -> List[str]:
        """Return a text such as 'a.jpg: annotation 7' for each of the first annotations in ``rows``."""
        coco, table, places = self.coco, self.table, []
        for row in rows[:EXAMPLES].tolist():
            image, code = int(table.image[row]), int(coco.annotations.id[row])
            named = (
                f'annotation {coco.ids.get_original(code)}' if code != MISSING_ID else f'entry {row} of "annotations"'
            )
            places.append(f'{table.images[image] if image >= 0 else "an image that is not listed"}: {named}')
        return places

    def _describe_sizes(self) -> None:
        sizes, names = self.table.sizes, self.coco.images.name
        with np.errstate(invalid='ignore'):
            wrong = ((sizes != NO_NUMBER) & ~((sizes >= 1) & (sizes <= LARGEST_SIDE))).any(axis=1)
        for place in np.flatnonzero(wrong).tolist():
            height, width = sizes[place].tolist()
            self.faults.add(WRONG_SIZE_FAULT, f'{self.source}: {shorten(names[place])}: {width:g} x {height:g}')

    def _describe_ids(self) -> None:
        coco, columns, images, about = self.coco, self.coco.annotations, self.coco.images, self.about
        image_ids = np.array(images.id, np.int64)
        self.details.duplicate_image_ids = list(
            map(coco.ids.get_original, find_repeated(image_ids[image_ids != MISSING_ID]))
        )
        if not coco.panoptic:
            self.details.duplicate_annotation_ids = list(
                map(coco.ids.get_original, find_repeated(columns.id[columns.id != MISSING_ID]))
            )
        if len(set(images.name)) < len(images.name):
            about.duplicate_files = list_twice(filter(None, images.name))[:EXAMPLES]
        sizes = self.table.sizes
        without = {
            'images.id': (image_ids == MISSING_ID).sum(),
            'images.height': (sizes[:, 0] == NO_NUMBER).sum(),
            'images.width': (sizes[:, 1] == NO_NUMBER).sum(),
            f'images.{"coco_url" if self.family == "lvis_url" else "file_name"}': sum(not name for name in images.name),
            'categories.isthing': coco.without_isthing if coco.panoptic else 0,
            'annotations.id': (columns.id == MISSING_ID).sum(),
            'annotations.image_id': (columns.image_id == MISSING_ID).sum(),
            'annotations.category_id': (columns.category_id == MISSING_ID).sum(),
            'annotations.bbox': (~self.table.boxed).sum(),
            'annotations.area': (columns.area == NO_NUMBER).sum(),
        }
        about.without_key = {key: int(count) for key, count in without.items() if count}


def _list_labels(coco: CocoFile, codes: Sequence[int]) -> List[int]:
    """Return the label of each category: the index of its id in ``codes``, or -1 if its id is not in ``codes``."""
    # If two categories share an id, the last label wins, as in mmdet's dict.
    last = {code: label for label, code in enumerate(codes)}
    return [last.get(code, -1) for code, _ in coco.categories]


def _count_needed_outputs(annotations: AnnotationFacts) -> int:
    """Return the largest category id + 1, or the number of categories if the ids cannot be labels."""
    listed = max(len(annotations.categories), 1)
    enough = max(annotations.categories, default=0) + 1
    return enough if listed <= enough <= listed + _MOST_UNUSED else listed


def _find_dropped_by_mmdet(
    coco: CocoFile, image: np.ndarray, corners: np.ndarray, boxed: np.ndarray, sizes: np.ndarray
) -> Dict[str, np.ndarray]:
    """Return {reason: mask}, bool (N,), for annotations that ``CocoDataset.parse_data_info`` drops."""
    columns = coco.annotations
    inside = boxed.copy()
    with np.errstate(invalid='ignore', over='ignore'):
        for axis, extents in enumerate(sizes.T[::-1]):  # one axis at a time to save memory
            ends = np.minimum(corners[:, 2 + axis], np.append(extents, np.inf)[image])
            inside &= ends > np.maximum(corners[:, axis], 0)
    return {
        'no part inside the image': boxed & ~inside,
        'thinner than one pixel': boxed & ((columns.box[:, 2] < 1) | (columns.box[:, 3] < 1)),
        'area is 0': (columns.area <= 0) & (columns.area != NO_NUMBER),
    }


class CocoSample(NamedTuple):
    """One image, and an annotation file that describes only this image."""

    image: str  #: Name of the image.
    text: str  #: Content of the annotation file: JSON, or the image list of VOC.


def select_samples(coco: CocoFile) -> List[CocoSample]:
    """Return samples of a few images, whose annotations have boxes, but no polygons or masks."""
    columns, images, original = coco.annotations, coco.images, coco.ids.get_original
    categories = [dict(id=original(code), name=name) for code, name in coco.categories]
    samples = []
    for place in select_spread(np.flatnonzero(np.isin(images.id, columns.image_id)).tolist()):
        image = dict(id=original(images.id[place]), file_name=images.name[place])
        image.update(height=images.height[place], width=images.width[place])
        annotations = [
            dict(
                id=original(int(columns.id[row])),
                image_id=image['id'],
                category_id=original(int(columns.category_id[row])),
                bbox=columns.box[row].tolist(),
                area=float(columns.area[row]),
                iscrowd=int(columns.crowd[row]),
                ignore=int(columns.ignore[row]),
            )
            for row in np.flatnonzero(columns.image_id == images.id[place]).tolist()
        ]
        record = dict(images=[image], annotations=annotations, categories=categories)
        samples.append(CocoSample(images.name[place], json.dumps(record)))
    return samples
