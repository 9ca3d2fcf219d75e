"""What training makes of a value in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from mmguard.labels.space import OTHERS, mapped_by
from mmguard.tools.storage.files import FILES, Files

#: (value, class) of a label map; a value may be ``'*'``: all that are not named.
Pairs = Tuple[Tuple[Any, int], ...]

#: How mmseg's LoadAnnotations decodes unless an argument says otherwise.
DEFAULT_BACKEND = 'pillow'


@dataclass(frozen=True)
class MapSettings:
    """How label maps are loaded, and which labels are valid then.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)`` and ``ignore_index``.
        ignore_index (int): The label that is not trained on.
        reduce_zero_label (bool): The loader makes 0 the ignored 255 and subtracts 1 from the others.
        label_map (tuple): Pairs (value, class), which the loader applies after that.
        guard_map (tuple): Pairs (value, class) of a guard in the pipeline, applied last.
        backend (str): The decoder of the loader, ``'pillow'``, ``'cv2'`` or ``'tifffile'``.
        files (Files): What reads them and their images; it takes along what reads URLs elsewhere.
    """

    num_classes: int
    ignore_index: int = 255
    reduce_zero_label: bool = False
    label_map: Pairs = ()
    guard_map: Pairs = ()
    backend: str = DEFAULT_BACKEND
    files: Files = field(default=FILES, compare=False, repr=False)

    def table(self) -> List[int]:
        """For each value from 0 to 255 as decoded, the label that training sees."""
        labels = list(range(256))
        if self.reduce_zero_label:
            # mmseg: 0 -> 255, minus one, 254 -> 255. So 255 stays, and 0 becomes 255.
            labels = [255 if value in (0, 255) else value - 1 for value in labels]
        if self.label_map:
            mapped = dict(self.label_map)
            # The map is a uint8 array.
            labels = [mapped_by(mapped, label, self.ignore_index) % 256 for label in labels]
        if self.guard_map:
            sanitized = dict(self.guard_map)
            labels = [mapped_by(sanitized, label, self.ignore_index) for label in labels]
        return labels

    def is_valid(self, label: int) -> bool:
        return 0 <= label < self.num_classes or label == self.ignore_index

    def invalid_values(self) -> Tuple[bool, ...]:
        """For each value from 0 to 255 as decoded, whether training sees an invalid label."""
        return tuple(not self.is_valid(label) for label in self.table())


def as_pairs(label_map: Optional[Mapping[Any, int]]) -> Pairs:
    """A label map in the form of :class:`MapSettings`."""
    checked: Dict[Any, int] = {_key(raw): int(label) for raw, label in (label_map or {}).items()}
    return tuple(sorted(checked.items(), key=lambda pair: (pair[0] == OTHERS, pair[0])))


def _key(raw: Any) -> Any:
    return raw if raw == OTHERS else int(raw)
