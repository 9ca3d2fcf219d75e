"""Counts voxels, block by block: values of labels, what is not finite in images, and the slices that hold them.

What was counted can be relabelled, without reading a file again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Collection, Dict, Sequence, Tuple

import numpy as np

from mmguard.labels.space import value_counts
from mmguard.tools.scan.nnunet.readers.volume import Volume
from mmguard.tools.scan.nnunet.record import CaseRecord, FileRecord, is_whole

#: More values than this are no classes; the most frequent ones are kept.
MAX_VALUES = 256
#: Unexpected values whose slices are kept.
MAX_SLICED = 32
#: A label file with more values may be an image.
_MANY = 32
#: Bound on what is counted while a file is read.
_MAX_COUNTED = 1 << 16
#: Beyond it float32 holds no odd integers.
_MAX_WHOLE = 1 << 24

FRACTIONS, NAN, INF = 'fractions', 'nan', 'inf'


def count_labels(volume: Volume, record: FileRecord, expected: Collection[int]) -> None:
    """Counts the values of a label file into its record.

    Values are those that nnU-Net sees: scaled by the header, as float32.

    Args:
        volume (Volume): The file.
        record (FileRecord): Gets ``values``, ``fractions``, ``nan``, ``inf`` and ``slices``.
        expected (collection of int): Valid values; the slices of other values are noted. Empty: all are valid.

    Raises:
        CannotRead: The file ends too early, or is damaged.
    """
    counter = _Counter(record, expected, volume.lines)
    begin = 0
    for block in volume.blocks():
        if volume.is_scaled:
            block = block * volume.slope + volume.inter
        if block.dtype.kind == 'f':
            counter.add_floats(np.asarray(block, np.float32), begin)
        else:
            counter.add_integers(block, begin)
        begin += len(block)
    counter.finish()


def count_not_finite(volume: Volume, record: FileRecord) -> None:
    """Counts NaN and infinite voxels of an image into its record.

    Raises:
        CannotRead: The file ends too early, or is damaged.
    """
    if volume.dtype.kind != 'f':
        volume.check()
        return
    begin = 0
    for block in volume.blocks():
        if not np.isfinite(block).all():
            _note_not_finite(record, block, begin, volume.lines)
        begin += len(block)


class _Counter:
    def __init__(self, record: FileRecord, expected: Collection[int], lines: int) -> None:
        self.record = record
        self.lines = lines
        self.expected = frozenset(expected)
        self.whole: Dict[int, int] = {}
        self.broken: Dict[str, int] = {}

    def add_integers(self, block: np.ndarray, begin: int) -> None:
        if block.dtype.kind == 'u' and block.dtype.itemsize == 8:
            block = block.view(np.int64)  # what exceeds int64 turns negative: unexpected either way
        counts = value_counts(block)
        self._compare(block, counts)
        for value, count in counts.items():
            self._count(self.whole, value, count)
        if self.expected:
            for value in counts:
                if value not in self.expected:
                    self._note(str(value), block == value, begin)

    def add_floats(self, block: np.ndarray, begin: int) -> None:
        finite = np.isfinite(block)
        if not finite.all():
            _note_not_finite(self.record, block, begin, self.lines)
            block = np.where(finite, block, 0.5)  # neither counted as whole nor, below, as a fraction
        rounded = np.rint(block)
        whole = (rounded == block) & (np.abs(block) <= _MAX_WHOLE)
        if whole.all():
            self.add_integers(block.astype(np.int32), begin)
            return
        for value, count in value_counts(rounded[whole].astype(np.int32)).items():
            self._count(self.whole, value, count)
            if self.expected and value not in self.expected:
                self._note(str(value), whole & (rounded == value), begin)
        broken = ~whole & finite
        if broken.any():
            values, counts = np.unique(block[broken], return_counts=True)
            self._compare(block, dict(zip(values.tolist(), counts.tolist())))
            for value, count in zip(values, counts):
                self._count(self.broken, str(value), int(count))
            self.record.fractions += int(broken.sum())
            self._note(FRACTIONS, broken, begin)

    def _compare(self, block: np.ndarray, counts: Dict) -> None:
        if len(counts) <= _MANY or block.shape[-1] < 2:
            return
        frequent = max(counts, key=lambda value: counts[value])
        left, right = block[..., :-1], block[..., 1:]
        differ = left != right
        self.record.pairs += int((differ | (left != frequent)).sum())
        self.record.unlike += int(differ.sum())

    def _count(self, counts: Dict, value: object, count: int) -> None:
        if value in counts or len(counts) < _MAX_COUNTED:
            counts[value] = counts.get(value, 0) + count
        else:
            self.record.left_out += count

    def _note(self, value: str, where: np.ndarray, begin: int) -> None:
        if value in self.record.slices or len(self.record.slices) < MAX_SLICED:
            _note(self.record, value, where, begin, self.lines)

    def finish(self) -> None:
        values: Dict[str, int] = {str(value): count for value, count in self.whole.items()}
        values.update(self.broken)
        declared = {str(value) for value in self.expected}

        def rank(value: str) -> Any:
            return value not in declared, value in self.broken, -values[value], value

        kept = sorted(values, key=rank)[:MAX_VALUES]
        self.record.left_out += sum(values.values()) - sum(values[value] for value in kept)
        self.record.values = {value: values[value] for value in kept}


def _note_not_finite(record: FileRecord, block: np.ndarray, begin: int, lines: int) -> None:
    for name, where in ((NAN, np.isnan(block)), (INF, np.isinf(block))):
        number = int(where.sum())
        if number:
            setattr(record, name, getattr(record, name) + number)
            _note(record, name, where, begin, lines)


def _note(record: FileRecord, value: str, where: np.ndarray, begin: int, lines: int) -> None:
    counts = record.slices.setdefault(value, {})
    for row, count in enumerate(where.sum(axis=1).tolist(), begin):
        if count:
            counts[row // lines] = counts.get(row // lines, 0) + count


def relabelled(record: CaseRecord, label_map: Sequence[Tuple[int, int]] = (), rounded: bool = False) -> CaseRecord:
    """Return a case with other labels, of (value, label) pairs; ``rounded`` takes the nearest integers first."""
    label = record.label
    if label is None or not label.is_read or label.left_out:
        return record
    table = dict(label_map)
    values: Counter = Counter()
    slices: Dict[str, Counter] = {}
    for value, count in label.values.items():
        number = round(float(value)) if rounded or is_whole(value) else None
        new = value if number is None else str(table.get(number, number))
        values[new] += count
        slices.setdefault(new, Counter()).update(label.slices.get(value, {}))
    if not rounded and FRACTIONS in label.slices:
        slices[FRACTIONS] = Counter(label.slices[FRACTIONS])
    written = replace(
        label,
        values=dict(values),
        slices={value: dict(places) for value, places in slices.items() if places},
        fractions=0 if rounded else label.fractions,
        # What was no picture becomes none when its values do.
        unlike=label.unlike if label.is_picture else 0,
    )
    return replace(record, label=written)
