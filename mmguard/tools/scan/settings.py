"""Settings of a scan: how training turns stored values into labels, and what the command line says about labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from mmguard.labels.space import OTHERS, apply_label_map
from mmguard.tools.storage.files import FILES, Files

#: Pairs (value, class) of a label map; the value ``'*'`` means all that are not named.
Pairs = Tuple[Tuple[Any, int], ...]

#: Default decoder of mmseg's LoadAnnotations.
DEFAULT_BACKEND = 'pillow'
SPLITS = ('train', 'val', 'test')


@dataclass(frozen=True)
class MapSettings:
    """Settings for loading label maps, and for the labels that are valid after that."""

    num_classes: int  #: Valid labels are ``[0, num_classes)`` and ``ignore_index``.
    ignore_index: int = 255  #: The label that is not trained on.
    reduce_zero_label: bool = False  #: The loader makes 0 the ignored 255 and subtracts 1 from the others.
    label_map: Pairs = ()  #: Pairs (value, class), which the loader applies after that.
    guard_map: Pairs = ()  #: Pairs (value, class) of a guard in the pipeline, applied last.
    backend: str = DEFAULT_BACKEND  #: The decoder of the loader, ``'pillow'``, ``'cv2'`` or ``'tifffile'``.
    #: Reader of the files and their images; it includes the reader of URLs when sent to another process.
    files: Files = field(default=FILES, compare=False, repr=False)

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


def as_pairs(label_map: Optional[Mapping[Any, int]]) -> Pairs:
    """Convert a label map into the form of :class:`MapSettings`."""
    checked: Dict[Any, int] = {_key(raw): int(label) for raw, label in (label_map or {}).items()}
    return tuple(sorted(checked.items(), key=lambda pair: (pair[0] == OTHERS, pair[0])))


def _key(raw: Any) -> Any:
    return raw if raw == OTHERS else int(raw)


@dataclass(frozen=True)
class ScanOptions:
    """Options for facts that no config gives, and for what is scanned."""

    num_classes: Optional[int] = None  #: Number of classes. ``None``: that of the config, else every value is valid.
    ignore_index: Optional[int] = None  #: ``None``: that of the config, else 255.
    reduce_zero_label: bool = False  #: Argument of the data set; for a folder.
    label_map: Pairs = ()  #: Argument of the data set; for a folder.
    images: Optional[str] = None  #: Folder of the images; for a folder.
    suffix: Optional[str] = None  #: End of the names of label files; for a folder.
    splits: Tuple[str, ...] = SPLITS  #: Splits of a config to scan.
    labels: Optional[str] = None  #: Meaning of a label, ``'positions'`` or ``'ids'``; for a COCO JSON.
    #: Framework that trains on it, a key of :data:`~mmguard.labels.numbering.FRAMEWORKS`; for a COCO JSON.
    framework: Optional[str] = None
    masks: bool = False  #: Read the masks of a COCO JSON, too; a config that trains masks requests it itself.
    classes: Optional[Tuple[str, ...]] = None  #: Names of the classes in order; for Labelme and VOC.
    run_code: bool = False  #: Allow a config in YAML or JSON to name code.

    def words(self) -> List[str]:
        """Return the command-line arguments that give the same options."""
        written = [
            ('--num-classes', [] if self.num_classes is None else [str(self.num_classes)]),
            ('--ignore-index', [] if self.ignore_index is None else [str(self.ignore_index)]),
            ('--label-map', [','.join(f'{raw}:{label}' for raw, label in self.label_map)] if self.label_map else []),
            ('--classes', [','.join(self.classes)] if self.classes else []),
            ('--images', [self.images] if self.images else []),
            ('--suffix', [self.suffix] if self.suffix else []),
            ('--labels', [self.labels] if self.labels else []),
            ('--framework', [self.framework] if self.framework else []),
            ('--split', [] if self.splits == SPLITS else list(self.splits)),
        ]
        words = [word for option, values in written if values for word in (option, *values)]
        flags = {'--reduce-zero-label': self.reduce_zero_label, '--masks': self.masks, '--run-code': self.run_code}
        return [*words, *(flag for flag, is_set in flags.items() if is_set)]

    def settings(self) -> MapSettings:
        """Return the settings for a folder of label maps."""
        return MapSettings(
            num_classes=self.num_classes or 256,
            ignore_index=255 if self.ignore_index is None else self.ignore_index,
            reduce_zero_label=self.reduce_zero_label,
            label_map=self.label_map,
        )
