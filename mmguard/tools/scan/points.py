"""Label files of points: one number per point, without a header, as SemanticKITTI, S3DIS and nuScenes keep them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, BinaryIO, Iterator, Optional, Tuple

import numpy as np

from mmguard.labels.space import mapped_by
from mmguard.tools.scan.faults import NoLabels
from mmguard.tools.scan.record import POINTS, MapRecord
from mmguard.tools.scan.settings import MapSettings, Pairs

#: No value of such a file is higher.
EVERY_CLASS = 1 << 16
#: SemanticKITTI's files: the class in the lower 16 bits, the number of the object in the upper ones.
SEMANTIC_KITTI = 'uint32', EVERY_CLASS
#: What a file of more values holds are no labels.
MOST_VALUES = 1024
#: More bytes are no label file.
_LARGEST = 1 << 31
#: Scans of points are float32.
_NUMBER = 4


@dataclass(frozen=True)
class PointSettings(MapSettings):
    """How labels of points are loaded. Values are what is stored, of any size, the number of an object left out.

    Args:
        dtype (str): Of the numbers.
        modulo (int): What is left of a number is the value; 0: all of it.
        classes (tuple[int], optional): Value -> class, as PointSegClassMapping looks it up; ``None``: no such step.
        value_map (tuple): Pairs (value, class), which a guard looks up first.
        unlabelled (int, optional): What a value that ``classes`` does not hold counts as, where nothing looks it up.
        per_point (int): Numbers of each point in the scan that belongs to a label file; 0: not known.
    """

    dtype: str = 'int64'
    modulo: int = 0
    classes: Optional[Tuple[int, ...]] = None
    value_map: Pairs = ()
    unlabelled: Optional[int] = None
    per_point: int = 0

    partner = 'points'

    def table(self) -> Any:
        return _Table(self)

    def is_valid(self, label: int) -> bool:
        if label == self.ignore_index and self.classes is not None and label not in self.classes:
            made = (self.unlabelled, *dict(self.value_map).values(), *dict(self.guard_map).values())
            return label in made  # else it stands in the file, and cannot be looked up
        return super().is_valid(label)

    def invalid_values(self) -> Tuple[bool, ...]:
        return ()  # where invalid pixels lie is not asked of points


class _Table:
    """For each value the label that training sees; for one that cannot be looked up the value."""

    def __init__(self, settings: PointSettings) -> None:
        self._settings = settings
        self._first, self._last = dict(settings.value_map), dict(settings.guard_map)

    def __getitem__(self, value: int) -> int:
        settings, label = self._settings, value
        if value in self._first:
            label = self._first[value]
        elif settings.classes is not None and 0 <= value < len(settings.classes):
            label = settings.classes[value]
        elif settings.classes is not None and settings.unlabelled is not None:
            label = settings.unlabelled
        return mapped_by(self._last, label, settings.ignore_index) if self._last else label

    def __iter__(self) -> Iterator[int]:
        known = len(self._settings.classes) if self._settings.classes is not None else self._settings.num_classes
        return (self[value] for value in range(known))


def read_points(record: MapRecord, file: BinaryIO, settings: PointSettings, size: int) -> None:
    """Counts the values of a label file.

    Args:
        record (MapRecord): Takes them.
        file (BinaryIO): The opened file.
        settings (PointSettings): What its bytes are.
        size (int): Its bytes.

    Raises:
        NoLabels: It holds something else.
    """
    kind = np.dtype(settings.dtype)
    if size % kind.itemsize:
        raise NoLabels(f'its size is no multiple of {kind.itemsize} bytes ({settings.dtype})')
    if size > _LARGEST:
        raise MemoryError(f'{size:,} bytes')
    stored = np.frombuffer(file.read(size), kind)
    if settings.modulo:
        stored = stored.astype(np.int64) % settings.modulo
    values, counts = np.unique(stored, return_counts=True)
    if len(values) > MOST_VALUES:
        raise NoLabels(f'more than {MOST_VALUES:,} values: no labels, or not {settings.dtype}')
    record.form, record.shape = POINTS, (1, len(stored))
    record.raw = dict(zip(values.tolist(), counts.tolist()))


def count_points(record: MapRecord, size: int, per_point: int) -> None:
    """Notes how many points a scan of ``size`` bytes has."""
    if size < 0:
        return  # a server does not say it
    if per_point and size % (per_point * _NUMBER):
        record.image_fault = f'size is no multiple of {per_point} float32'
    elif per_point:
        record.image_form, record.image_shape = POINTS, (1, size // (per_point * _NUMBER))
