"""Table of the instances of a data set, independent of the file format, and the facts computed from the table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from mmguard.facts.labels import MOST_FILES, AnnotationFacts, BoxedImage, BoxFacts, CocoFacts, DrawnBox, LabelFacts
from mmguard.labels.instances import BOX_REASONS, LABEL_REASON, NOT_FINITE, find_corner_faults

#: Value for a missing size, area or corner. JSON can express this value (-1e999), but real files do not contain it.
NO_NUMBER = float('-inf')
#: Maximum number of examples of each fault.
EXAMPLES = 8
#: Tolerance in pixels: boxes often exceed the image by a fraction of a pixel.
EDGE = 1.0
#: Maximum number of images that are kept for drawing, and of boxes per image.
DRAWN, MOST_BOXES = 20, 200
#: Maximum width and height of an image.
LARGEST_SIDE = 1 << 24
WRONG_SIZE_FAULT = f'the size is not between 1 and {LARGEST_SIDE:,} pixels'
#: Reason for leaving out an annotation: its class is not trained on.
UNLISTED_REASON = 'category not in the class list'
#: Largest range of values that is counted with a table.
_TABLE = 1 << 16


@dataclass
class Table:
    """N annotations of M images in C categories."""

    images: List[str]  #: (M,), file of each image, for messages.
    sizes: np.ndarray  #: float64 (M, 2), height and width; values <= 0 and NaN are unknown.
    categories: List[str]  #: (C,), keys of ``AnnotationFacts.instances_of``.
    image: np.ndarray  #: int64 (N,), index of the image; -1 if it is not listed.
    category: np.ndarray  #: int64 (N,), index of the category; -1 if it is unknown.
    label: np.ndarray  #: int64 (N,), label in training; has no meaning if the annotation is left out.
    corners: np.ndarray  #: float64 (N, 4), x1, y1, x2, y2 in pixels; fastest in the layout of :func:`stack_columns`.
    boxed: np.ndarray  #: bool (N,), True if there is a box.
    ignored: np.ndarray  #: bool (N,), True for crowds and difficult objects.
    #: Reason why the loader skips annotations -> bool (N,); only the first reason of an annotation counts.
    left_out: Dict[str, np.ndarray] = field(default_factory=dict)
    #: bool (N,), True if the box is checked because its category is trained on.
    judged: np.ndarray = field(default_factory=lambda: np.ones(1, bool))
    #: Returns the path of an image by index, empty if unknown; called only for images that are drawn.
    path_of: Callable[[int], str] = lambda place: ''
    shows_size: bool = True  #: Examples show a box as x, y, width, height, as COCO stores it; otherwise as two corners.
    written: Optional[np.ndarray] = None  #: float64 (N, 4), numbers of a box in its file, if they are not ``corners``.

    @cached_property
    def extents(self) -> np.ndarray:
        """Height and width of each annotation's image, float64 (N, 2); infinite if unknown."""
        known = np.where(self.sizes > 0, self.sizes, np.inf)
        return stack_columns(*(np.append(side, np.inf)[self.image] for side in known.T))  # -1 takes the last


def table_of_names(
    images: Sequence[str],
    sizes: Sequence[Optional[Tuple[float, float]]],
    rows: Sequence[Tuple[int, str, Tuple[float, ...]]],
    names: Sequence[str],
    categories: Sequence[str],
) -> Table:
    """Return a table of objects, given their class names and corners. No object is marked as ignored.

    Args:
        rows (Sequence): (index of the image, class name, corners) of each object.
    """
    label_of = {name: label for label, name in enumerate(names)}
    place_of = {name: place for place, name in enumerate(categories)}
    label = np.array([label_of.get(name, -1) for _, name, _ in rows], np.int64)
    corners = np.array([sides for *_, sides in rows], float).reshape(-1, 4)
    boxed = ~(corners == NO_NUMBER).all(axis=1)
    return Table(
        images=list(images),
        sizes=np.array([size or (NO_NUMBER, NO_NUMBER) for size in sizes], float).reshape(-1, 2),
        categories=list(categories),
        image=np.array([number for number, *_ in rows], np.int64),
        category=np.array([place_of.get(name, -1) for _, name, _ in rows], np.int64),
        label=label,
        corners=corners,
        boxed=boxed,
        ignored=np.zeros(len(rows), bool),
        left_out={UNLISTED_REASON: label < 0, 'no box': ~boxed},
        judged=label >= 0,
        shows_size=False,
    )


def facts_of(
    table: Table,
    num_classes: Optional[int],
    class_names: Sequence[str],
    annotations: AnnotationFacts,
    coco: Optional[CocoFacts] = None,
) -> LabelFacts:
    """Compute the facts of a table. ``annotations`` is filled in, and becomes part of the facts.

    Labels greater than or equal to ``num_classes``, by default the number of names, are invalid.
    """
    num_classes = max(len(class_names), 1) if num_classes is None else num_classes
    coco, boxes = coco or CocoFacts(), BoxFacts()
    count = len(table.label)
    listed = table.image >= 0
    extents = table.extents
    codes = find_corner_faults(table.corners, extents)
    codes[~(table.boxed & table.judged & listed)] = 0
    trained = listed & ~table.ignored
    left_out = np.zeros(count, bool)
    for why, flags in table.left_out.items():
        fresh = flags & ~left_out
        left_out |= fresh
        if fresh.any():
            annotations.left_out[why] = int(fresh.sum())
    trained &= ~left_out
    is_beyond = (table.label < coco.min_label) | (table.label >= num_classes + coco.spare)
    invalid = trained & (codes == 0) & is_beyond
    usable = trained & (codes == 0) & ~invalid
    reasons = {BOX_REASONS[code]: int(n) for code, n in enumerate(np.bincount(codes, minlength=1)) if code and n}
    if invalid.any():
        reasons[LABEL_REASON] = int(invalid.sum())
    annotations.usable = count_codes(table.label[usable])
    _count_categories(table, annotations)
    _count_images(table, usable, (codes > 0) | (table.category < 0), annotations)
    annotations.annotations = count
    faults = _describe_boxes(table, codes, extents, boxes, bool(annotations.size_mismatches))
    annotations.crowds = int(table.ignored.sum())
    if not listed.all():
        annotations.left_out['its image is not listed'] = int(count - listed.sum())
    faulty = np.bincount(table.image[listed & (invalid | (codes > 0))], minlength=len(table.images))
    return LabelFacts(
        values=count_codes(table.label[invalid]),
        num_classes=num_classes,
        total=count,
        files=len(table.images),
        offending_files=int(np.count_nonzero(faulty)),
        offending={table.images[at]: int(faulty[at]) for at in np.flatnonzero(faulty)[:MOST_FILES].tolist()},
        kind='instances',
        reasons=reasons,
        class_names=list(class_names),
        histogram=_count_labels(table.label[trained], table.image[trained], annotations),
        annotations=annotations,
        boxes=boxes,
        coco=coco,
        boxed=choose_boxed_images(table, {LABEL_REASON: invalid, **faults}),
    )


def choose_boxed_images(table: Table, faults: Mapping[str, np.ndarray]) -> List[BoxedImage]:
    """Return the images with the most faulty boxes, the worst first.

    Args:
        faults (dict[str, np.ndarray]): Fault -> bool (N,), True for boxes with it. A box counts for its first fault.
    """
    names, code = ['', *faults], np.zeros(len(table.image), np.int64)
    for place, flags in enumerate(faults.values(), 1):
        code[(code == 0) & flags & (table.image >= 0)] = place
    counts = np.bincount(table.image[code > 0], minlength=len(table.images))
    worst = np.argsort(-counts, kind='stable')[:DRAWN]
    return [_collect_boxes(table, place, names, code) for place in worst.tolist() if counts[place]]


def _collect_boxes(table: Table, place: int, names: Sequence[str], code: np.ndarray) -> BoxedImage:
    rows = np.flatnonzero((table.image == place) & (table.boxed | (code > 0)))
    rows = rows[np.argsort(code[rows] == 0, kind='stable')]
    boxes = [DrawnBox(tuple(table.corners[row].tolist()), names[code[row]]) for row in rows[:MOST_BOXES].tolist()]
    found = np.bincount(code[rows], minlength=len(names)).tolist()
    faults = tuple((name, number) for name, number in zip(names, found) if name and number)
    height, width = table.sizes[place].tolist()
    path = table.path_of(place)
    return BoxedImage(table.images[place], path, (height, width), tuple(boxes), len(rows), faults)


def find_places(values: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return each value's index in ``keys``, int64 (N,); -1 if missing. The last of equal keys counts, as in a dict."""
    if not len(keys) or not len(values):
        return np.full(len(values), -1, np.int64)
    low, high = int(keys.min()), int(keys.max())
    if high - low < 4 * len(keys) + 1024:  # nearly consecutive: a table is faster than a search
        table = np.full(high - low + 2, -1, np.int64)
        table[keys - low] = np.arange(len(keys))
        inside = (values >= low) & (values <= high)
        return table[np.where(inside, values - low, high - low + 1)]
    order = np.argsort(keys, kind='stable')
    found = np.searchsorted(keys[order], values, side='right') - 1
    candidate = order[found.clip(0)]
    return np.where((found >= 0) & (keys[candidate] == values), candidate, -1)


def list_twice(items: Iterable[Any]) -> List[Any]:
    """Return the items that occur more than once, in the order in which they first occur."""
    return [item for item, count in Counter(items).items() if count > 1]


def find_repeated(values: np.ndarray) -> List[int]:
    """Return the smallest few values that occur more than once, in ascending order."""
    ordered = np.sort(values, kind='stable')
    again = ordered[1:][ordered[1:] == ordered[:-1]].tolist()
    return list(dict.fromkeys(again))[:EXAMPLES]


def stack_columns(*columns: np.ndarray) -> np.ndarray:
    """Return K columns (N,) as (N, K), each contiguous, which makes conditions on whole rows three times as fast."""
    return np.array(columns).T


def count_codes(values: np.ndarray) -> Dict[int, int]:
    """Count the values of an array, as {value: count} in ascending order."""
    if not len(values):
        return {}
    low, high = int(values.min()), int(values.max())
    if high - low < _TABLE:
        counts = np.bincount(values - low)
        found = np.flatnonzero(counts)
        return dict(zip((found + low).tolist(), counts[found].tolist()))
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist()))


def _count_categories(table: Table, annotations: AnnotationFacts) -> None:
    known = table.category >= 0
    counts = np.bincount(table.category[known], minlength=len(table.categories)).tolist()
    for name, instances in zip(table.categories, counts):
        # Two categories with one name (or id) are reported as duplicates and counted together.
        annotations.instances_of[name] = annotations.instances_of.get(name, 0) + instances


def _count_images_with(codes: np.ndarray, images: np.ndarray, number: int) -> List[int]:
    """Return the number of images with each code in ``range(number)``.

    Args:
        codes (np.ndarray): int64 (N,), code of each annotation.
        images (np.ndarray): int64 (N,), index of the image of each annotation.
    """
    base = int(images.max(initial=0)) + 1
    pairs = np.sort(codes * base + images)
    pairs = pairs[np.concatenate([[True], pairs[1:] != pairs[:-1]])] if len(pairs) else pairs
    return np.bincount(pairs // base, minlength=number).tolist()


def _count_labels(labels: np.ndarray, images: np.ndarray, annotations: AnnotationFacts) -> Dict[int, int]:
    histogram = count_codes(labels)
    codes = find_places(labels, np.array(list(histogram), np.int64))
    annotations.files_with_class = dict(zip(histogram, _count_images_with(codes, images, len(histogram))))
    return histogram


def _count_images(table: Table, usable: np.ndarray, faulty: np.ndarray, annotations: AnnotationFacts) -> None:
    annotations.images = len(table.images)
    listed = table.image >= 0
    named = listed & ~table.left_out.get(UNLISTED_REASON, np.zeros(len(table.image), bool))
    with_target, spoiled, kept = np.zeros((3, len(table.images)), bool)
    for images, rows in ((with_target, usable), (spoiled, listed & faulty), (kept, named)):
        images[table.image[rows]] = True
    annotations.images_without_target = int((~with_target).sum())
    annotations.images_spoiled = int((spoiled & ~with_target).sum())
    annotations.images_kept_empty = int((kept & ~with_target & ~spoiled).sum())
    small = (table.sizes < annotations.min_size).any(axis=1)
    annotations.small_images = int((small & np.isfinite(table.sizes).all(axis=1)).sum())


def _describe_boxes(
    table: Table, codes: np.ndarray, extents: np.ndarray, boxes: BoxFacts, are_other_sizes: bool
) -> Dict[str, np.ndarray]:
    """Store in ``boxes`` how many boxes have each fault. Return {fault: bool (N,)}, True for boxes with the fault."""
    looked_at = table.boxed & table.judged & (table.image >= 0) & (codes != NOT_FINITE)
    negative = looked_at & (table.corners < 0).any(axis=1)
    over = (table.corners[:, 2] > extents[:, 1] + EDGE) | (table.corners[:, 3] > extents[:, 0] + EDGE)
    over &= looked_at & (codes == 0)
    boxes.negative_boxes, boxes.over_edge = int(negative.sum()), int(over.sum())
    if boxes.over_edge:
        sides = extents[looked_at][:, ::-1]
        first, second = table.corners[looked_at, :2], table.corners[looked_at, 2:]
        boxes.off_axis = find_off_axis(first / sides, second / sides)
    boxes.below_minus_one = int((negative & (table.corners < -1).any(axis=1)).sum())
    faults = {reason: codes == code for code, reason in enumerate(BOX_REASONS) if code}
    faults.update(negative=negative, over_edge=over)
    for reason, flags in faults.items():
        first = np.flatnonzero(flags)[:EXAMPLES].tolist()
        if first:
            boxes.box_examples[reason] = [_format_example(table, place) for place in first]
    return {**faults, 'unit': _describe_convention(table, looked_at, extents, boxes, are_other_sizes)}


#: Share of boxes beyond an edge that means a systematic error; tolerance for rounding, as a share of the image.
_OFTEN, _ROUNDING = 0.1, 0.01


def find_off_axis(first: np.ndarray, second: np.ndarray) -> str:
    """Return the axis, ``'x'`` or ``'y'``, along which many boxes end beyond the image, or ``''``.

    Return ``''`` if only a few boxes do, if any box begins before the image, or if any leaves it along the other axis.

    Args:
        first, second (np.ndarray): (N, 2), corners of the boxes as fractions of their images.
    """
    beyond = (second > 1 + _ROUNDING).sum(axis=0)
    outside = beyond + (first < -_ROUNDING).sum(axis=0)
    often = (outside == beyond) & (beyond > max(_OFTEN * len(second), 3)) & (outside[::-1] == 0)
    return 'xy'[int(often.argmax())] if often.any() else ''


def _describe_convention(
    table: Table, looked_at: np.ndarray, extents: np.ndarray, boxes: BoxFacts, are_other_sizes: bool
) -> np.ndarray:
    """Store in ``boxes`` how many boxes fit other formats. Return bool (N,), True for boxes that may hold fractions."""
    first, second = table.corners[:, :2], table.corners[:, 2:]
    with np.errstate(invalid='ignore', over='ignore'):
        if table.shows_size:
            sizes = second - first  # width and height as written
            unit = ((first >= 0) & (first <= 1) & (sizes > 0) & (sizes <= 1)).all(axis=1)
            others = {
                'corners': (first, sizes),
                'rows': (first[:, ::-1], sizes[:, ::-1]),
                'centres': (first - sizes / 2, first + sizes / 2),
            }
        else:
            # Reading VOC truncates fractions and subtracts one.
            unit = ((table.corners >= -1) & (table.corners <= 0)).all(axis=1)
            others = {'sizes': (first, first + second + 1)}
    unit &= looked_at
    boxes.inside_unit = int(unit.sum())
    if not (boxes.over_edge or boxes.negative_boxes or boxes.box_examples or are_other_sizes):
        return unit
    boxes.all_zero = int((looked_at & (table.corners == 0).all(axis=1)).sum())
    bounds = np.where(looked_at & np.isfinite(extents).all(axis=1), extents.T, -np.inf).T[:, ::-1]
    ways = {name: (low, high, bounds) for name, (low, high) in {'': (first, second), **others}.items()}
    ways['swapped'] = (first, second, bounds[:, ::-1])
    with np.errstate(invalid='ignore', over='ignore'):
        for name, (low, high, most) in ways.items():
            inside = (low >= -EDGE) & (high > low) & (high <= most + EDGE)
            boxes.inside_as[name] = int(inside.all(axis=1).sum())
    boxes.inside_now = boxes.inside_as.pop('')
    boxes.turned_boxes = int((looked_at & (second < first).any(axis=1)).sum())
    return unit


def _format_example(table: Table, place: int) -> str:
    left, top, right, bottom = (table.corners if table.written is None else table.written)[place].tolist()
    numbers: Tuple[float, ...] = (left, top, right, bottom)
    if table.shows_size:
        numbers = (left, top, right - left, bottom - top)
    return f'{table.images[int(table.image[place])]}: {", ".join(f"{number:.10g}" for number in numbers)}'
