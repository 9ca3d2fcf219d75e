"""Voxel counts of the files of one case, and a function that remaps labels without reading the files again."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.formats.volumes import Geometry, Volume
from mmguard.labels.rules import count_values

#: A label file contains an image if more than this share of its pairs of neighboring voxels differ.
MOSTLY = 0.7
#: Width of the ranges at 0 and at 255 that count as the two peaks of a binary mask.
_END = 32


@dataclass
class FileRecord:
    """Statistics of one volume."""

    path: str  #: Path of the file.
    fault: str = ''  #: Reason why the file cannot be read, in two or three words; empty if it was read.
    detail: str = ''  #: The reason with numbers and names.
    missing: int = 0  #: Number of voxels missing at the end of the file.
    dtype: str = ''  #: Type of the stored voxels.
    shape: List[int] = field(default_factory=list)  #: (channels, z, y, x), nnU-Net's order.
    dimension: int = 0  #: Number of axes of the file.
    geometry: Geometry = field(default_factory=Geometry)  #: Position of the voxels.
    form: str = ''  #: Voxel type or number of axes that nnU-Net does not accept; empty if accepted.
    scaling: List[float] = field(default_factory=list)  #: Slope and intercept of the header, if they change values.
    #: For labels, value as read by nnU-Net (float32) -> number of voxels; only the most frequent values.
    values: Dict[str, int] = field(default_factory=dict)
    left_out: int = 0  #: Number of voxels whose values are not in ``values``.
    fractions: int = 0  #: Number of voxels that are not integers.
    #: ``nan``, ``inf``: number of voxels that are not finite.
    nan: int = 0
    inf: int = 0
    #: ``pairs``, ``unlike``: number of pairs of neighbors along a line, and of pairs that differ, in label files with
    #: many values. Two voxels of the most frequent value do not count as a pair.
    pairs: int = 0
    unlike: int = 0
    #: Unexpected value (or ``'nan'``, ``'inf'``, ``'fractions'``) -> slice -> number of voxels.
    slices: Dict[str, Dict[int, int]] = field(default_factory=dict)

    @property
    def is_read(self) -> bool:
        return bool(self.shape) and not self.fault

    @property
    def voxels(self) -> int:
        return math.prod(self.shape) if self.shape else 0

    @property
    def holds_intensities(self) -> bool:
        """True if a label file contains intensities: most neighboring voxels differ, whereas labels form regions."""
        return self.unlike > MOSTLY * self.pairs and not self._is_two_peaks

    @property
    def _is_two_peaks(self) -> bool:
        """True if nearly all values are close to 0 or to 255, as in a compressed or resized binary mask."""
        counts = {int(value): count for value, count in self.values.items() if is_integer(value)}
        low = sum(count for value, count in counts.items() if 0 <= value <= _END)
        high = sum(count for value, count in counts.items() if 255 - _END <= value <= 255)
        return low + high > 0.8 * self.voxels and min(low, high) > 0.005 * self.voxels

    @property
    def has_slices(self) -> bool:
        """True if the file has several slices, counted over all channels; a flat gray image has only one."""
        return len(self.shape) > 1 and (self.shape[1] > 1 or self.shape[0] > 1)


@dataclass
class CaseRecord:
    """Statistics of the files of one case."""

    path: str  #: Path of the label file of the case.
    case: str  #: Name of the case.
    reader: str = ''  #: Name of the nnU-Net class that reads the files.
    label: Optional[FileRecord] = None  #: Label file, if there is one.
    images: List[FileRecord] = field(default_factory=list)  #: Image files.


def is_integer(value: str) -> bool:
    """Return True if a value of ``FileRecord.values`` is an integer.

    Example:
        >>> is_integer('-3'), is_integer('0.9998'), is_integer('1e-05')
        (True, False, False)
    """
    return value.lstrip('-').isdigit()


#: Maximum number of values kept, the most frequent ones: a file with more does not contain classes.
MAX_VALUES = 256
#: Maximum number of unexpected values whose slices are recorded.
MAX_SLICED = 32
#: A label file with more values than this may be an image.
_MANY = 32
#: Maximum number of values counted while reading a file.
_MAX_COUNTED = 1 << 16
#: Beyond this value, float32 cannot represent odd integers.
_MAX_WHOLE = 1 << 24

FRACTIONS, NAN, INF = 'fractions', 'nan', 'inf'


def count_labels(volume: Volume, record: FileRecord, expected: Collection[int]) -> None:
    """Read a label file as nnU-Net does (scaled by the header, as float32), and add its value counts to ``record``.

    Args:
        expected (Collection[int]): Valid values; empty if all are valid. Slices with other values are recorded.

    Raises:
        CannotRead: The file is truncated or damaged.
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
    """Count the NaN and infinite voxels of an image in ``record``.

    Raises:
        CannotRead: The file is truncated or damaged.
    """
    if volume.dtype.kind != 'f':
        volume.check()
        return
    counter = _Counter(record, (), volume.lines)
    begin = 0
    for block in volume.blocks():
        if not np.isfinite(block).all():
            counter.note_not_finite(block, begin)
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
            block = block.view(np.int64)  # values beyond int64 become negative: unexpected either way
        counts = count_values(block)
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
            self.note_not_finite(block, begin)
            block = np.where(finite, block, 0.5)  # counted neither as an integer nor, below, as a fraction
        rounded = np.rint(block)
        whole = (rounded == block) & (np.abs(block) <= _MAX_WHOLE)
        if whole.all():
            self.add_integers(block.astype(np.int32), begin)
            return
        for value, count in count_values(rounded[whole].astype(np.int32)).items():
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

    def note_not_finite(self, block: np.ndarray, begin: int) -> None:
        for name, where in ((NAN, np.isnan(block)), (INF, np.isinf(block))):
            number = int(where.sum())
            if number:
                setattr(self.record, name, getattr(self.record, name) + number)
                self._note(name, where, begin)

    def _note(self, value: str, where: np.ndarray, begin: int) -> None:
        slices = self.record.slices
        if value not in slices and len(slices) >= MAX_SLICED and value not in (NAN, INF):
            return
        counts = slices.setdefault(value, {})
        for row, count in enumerate(where.sum(axis=1).tolist(), begin):
            if count:
                counts[row // self.lines] = counts.get(row // self.lines, 0) + count

    def finish(self) -> None:
        values: Dict[str, int] = {str(value): count for value, count in self.whole.items()}
        values.update(self.broken)
        declared = {str(value) for value in self.expected}

        def rank(value: str) -> Any:
            return value not in declared, value in self.broken, -values[value], value

        kept = sorted(values, key=rank)[:MAX_VALUES]
        self.record.left_out += sum(values.values()) - sum(values[value] for value in kept)
        self.record.values = {value: values[value] for value in kept}


def relabel(record: CaseRecord, label_map: Sequence[Tuple[int, int]] = ()) -> CaseRecord:
    """Return the record of a case with mapped label values, without reading the files again.

    Args:
        label_map (Sequence[tuple[int, int]]): (value, label) pairs.
    """
    label = record.label
    if label is None or not label.is_read or label.left_out:
        return record
    table = dict(label_map)
    values: Counter = Counter()
    slices: Dict[str, Counter] = {}
    for value, count in label.values.items():
        number = round(float(value)) if is_integer(value) else None
        new = value if number is None else str(table.get(number, number))
        values[new] += count
        slices.setdefault(new, Counter()).update(label.slices.get(value, {}))
    if FRACTIONS in label.slices:
        slices[FRACTIONS] = Counter(label.slices[FRACTIONS])
    written = replace(
        label,
        values=dict(values),
        slices={value: dict(places) for value, places in slices.items() if places},
        # Remapping must not make labels look like an image.
        unlike=label.unlike if label.holds_intensities else 0,
    )
    return replace(record, label=written)
