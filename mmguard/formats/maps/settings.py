"""Settings by which training converts the values of label maps to labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Tuple

from mmguard.formats.options import Pairs, ScanOptions
from mmguard.labels.space import apply_label_map

#: Default decoder of mmseg's LoadAnnotations.
DEFAULT_BACKEND = 'pillow'


@dataclass(frozen=True)
class MapSettings:
    """Settings for loading label maps, and the labels that are valid afterwards."""

    num_classes: int  #: Valid labels are ``[0, num_classes)`` and ``ignore_index``.
    ignore_index: int = 255  #: The label to ignore.
    reduce_zero_label: bool = False  #: The loader makes 0 the ignored 255 and subtracts 1 from the others.
    label_map: Pairs = ()  #: Pairs (value, class), which the loader applies after that.
    guard_map: Pairs = ()  #: Pairs (value, class) of a guard in the pipeline, applied last.
    backend: str = DEFAULT_BACKEND  #: The decoder of the loader, ``'pillow'``, ``'cv2'`` or ``'tifffile'``.

    def table(self) -> List[int]:
        """Return the label that training sees, for each decoded value from 0 to 255."""
        labels = list(range(256))
        if self.reduce_zero_label:
            # mmseg: 0 -> 255, minus one, 254 -> 255; so 255 is unchanged, and 0 becomes 255.
            labels = [255 if value in (0, 255) else value - 1 for value in labels]
        if self.label_map:
            mapped = dict(self.label_map)
            # The map is a uint8 array.
            labels = [apply_label_map(mapped, label, self.ignore_index) % 256 for label in labels]
        if self.guard_map:
            sanitized = dict(self.guard_map)
            labels = [apply_label_map(sanitized, label, self.ignore_index) for label in labels]
        return labels

    def is_valid(self, label: int) -> bool:
        return 0 <= label < self.num_classes or label == self.ignore_index

    def invalid_values(self) -> Tuple[bool, ...]:
        """Return for each decoded value from 0 to 255 True if its label is invalid."""
        return tuple(not self.is_valid(label) for label in self.table())


def settings_of(options: ScanOptions) -> MapSettings:
    """Return the settings for a folder of label maps."""
    return MapSettings(
        num_classes=options.num_classes or 256,
        ignore_index=255 if options.ignore_index is None else options.ignore_index,
        reduce_zero_label=options.reduce_zero_label,
        label_map=options.label_map,
    )
