"""Options of `mmguard scan` and `mmguard fix`, and settings for loading label maps as in training."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

from mmguard.labels import OTHERS, VOID
from mmguard.labels.rules import ValidLabels, apply_label_map

#: Pairs (value, class) of a label map; the value ``'*'`` means all other values.
Pairs = Tuple[Tuple[Any, int], ...]

SPLITS = ('train', 'val', 'test')
#: Red, green, blue.
Color = Tuple[int, int, int]


def as_pairs(label_map: Optional[Mapping[Any, int]]) -> Pairs:
    """Convert a label map into sorted pairs (value, class), as :class:`MapSettings` needs them."""
    checked: Dict[Any, int] = {}
    for raw, label in (label_map or {}).items():
        checked[raw if raw == OTHERS else int(raw)] = int(label)
    return tuple(sorted(checked.items(), key=lambda pair: (pair[0] == OTHERS, pair[0])))


@dataclass(frozen=True)
class ScanOptions:
    """Options of `mmguard scan`: settings that replace those of a config, and options that select what is scanned."""

    num_classes: Optional[int] = None  #: Number of classes. ``None``: that of the config, else every value is valid.
    ignore_index: Optional[int] = None  #: Ignored label. ``None``: taken from the config, else 255.
    reduce_zero_label: bool = False  #: Same as this argument of mmseg's data sets; only for a folder.
    label_map: Pairs = ()  #: Label map of the data set; only for a folder.
    images: Optional[str] = None  #: Folder of the images; only for a folder.
    suffix: Optional[str] = None  #: End of the names of label files; only for a folder.
    splits: Tuple[str, ...] = SPLITS  #: Splits of a config to scan.
    labels: Optional[str] = None  #: Meaning of the labels of a COCO JSON: ``'positions'`` or ``'ids'`` of categories.
    #: Framework that trains on the data set, a key of :data:`~mmguard.labels.numbering.FRAMEWORKS`; for a COCO JSON.
    framework: Optional[str] = None
    masks: bool = False  #: Read the masks of a COCO JSON, too; always done if a config trains masks.
    classes: Optional[Tuple[str, ...]] = None  #: Names of the classes in order; for VOC and class folders.
    run_code: bool = False  #: Allow a config in YAML or JSON to import code that it names.

    def build_arguments(self) -> List[str]:
        """Return the equivalent command-line arguments."""
        given = {
            '--num-classes': self.num_classes,
            '--ignore-index': self.ignore_index,
            '--label-map': ','.join(f'{raw}:{label}' for raw, label in self.label_map),
            '--classes': ','.join(self.classes or ()),
            '--images': self.images,
            '--suffix': self.suffix,
            '--labels': self.labels,
            '--framework': self.framework,
        }
        words = [word for option, value in given.items() if value not in (None, '') for word in (option, str(value))]
        words += ['--split', *self.splits] if self.splits not in (SPLITS, ()) else []
        flags = {'--reduce-zero-label': self.reduce_zero_label, '--masks': self.masks, '--run-code': self.run_code}
        return [*words, *(flag for flag, is_set in flags.items() if is_set)]


@dataclass(frozen=True)
class FixOptions:
    """Options of `mmguard fix`: which labels are valid, and how invalid labels are changed."""

    num_classes: Optional[int] = None  #: For label maps: labels in ``[0, num_classes)`` and ``ignore_index`` are valid.
    ignore_index: int = VOID  #: Label that invalid pixels are set to.
    #: Value as stored -> class (COCO: category id -> category id), applied first. For label maps, ``'*'`` means all
    #: other values.
    label_map: Dict[Any, int] = field(default_factory=dict)
    #: For pixels: ``'ignore'`` (set to ``ignore_index``) or ``'clip'`` (clamp into the classes). Instances with an
    #: invalid label or box are dropped.
    on_invalid: str = 'ignore'
    #: VOC: valid names of objects. COCO: names of the categories in the order to write. If ``None``, any name is valid,
    #: and the order is kept.
    classes: Optional[Tuple[str, ...]] = None
    #: Name of a category -> its new name; applied before ``classes``.
    rename: Dict[str, str] = field(default_factory=dict)
    renumber: Optional[int] = None  #: First id for the categories of COCO, which are numbered in the order of the file.
    boxes: str = ''  #: Format of the boxes in the files, a key of ``BOX_WRITERS``; empty for the usual one.
    keep_boxes: bool = False  #: Keep the boxes of COCO: none is clamped, and no object is dropped for its box.
    scale: Optional[float] = None  #: Factor for the values of label maps.
    no_crowds: bool = False  #: Turn crowds (VOC: difficult objects) into ordinary objects.
    #: Folder of the images of COCO. Its file names replace differing ones; entries of missing images are left out.
    images: Optional[str] = None
    drop_empty: bool = False  #: Leave out images of COCO without an object.
    #: For label maps that are stored as colors: (red, green, blue) -> label. A file with an unlisted color is left
    #: out.
    colors: Dict[Color, int] = field(default_factory=dict)
    threshold: Optional[float] = None  #: For two classes: values above it become 1, all others 0.
    suffix: Optional[str] = None  #: End of the names of label maps. ``None``: chosen as by a scan.

    def map_label(self, value: int) -> int:
        """Return the label of a stored value after ``threshold`` and ``label_map``, before ``on_invalid`` applies."""
        index = value if self.threshold is None else int(value > self.threshold)
        return apply_label_map(self.label_map, index, self.ignore_index)

    def to_json(self) -> Dict[str, Any]:
        record = asdict(self)
        record['label_map'] = {str(raw): label for raw, label in self.label_map.items()}
        record['classes'] = None if self.classes is None else list(self.classes)
        record['colors'] = {','.join(map(str, color)): label for color, label in self.colors.items()}
        return record


#: Other names of the splits.
_OTHER_NAMES = {'training': 'train', 'valid': 'val', 'validation': 'val', 'testing': 'test'}


def is_left_out(split: str, options: ScanOptions) -> bool:
    """Return True if a split, or its folder, has the usual name of a split that is not requested."""
    name = os.path.basename(split)
    name = _OTHER_NAMES.get(name, name)
    return name in SPLITS and name not in options.splits


#: Default decoder of mmseg's LoadAnnotations.
DEFAULT_BACKEND = 'pillow'


@dataclass(frozen=True)
class MapSettings(ValidLabels):
    """Settings for loading label maps, and the labels that are valid afterwards."""

    num_classes: int  #: Number of classes.
    ignore_index: int = VOID  #: The label to ignore.
    reduce_zero_label: bool = False  #: The loader maps 0 to 255 and subtracts 1 from all others.
    label_map: Pairs = ()  #: Pairs (value, class), which the loader applies after ``reduce_zero_label``.
    guard_map: Pairs = ()  #: Pairs (value, class) of a guard in the pipeline, applied last.
    backend: str = DEFAULT_BACKEND  #: The decoder of the loader, ``'pillow'``, ``'cv2'`` or ``'tifffile'``.

    def table(self) -> List[int]:
        """Return the label that training sees, for each decoded value from 0 to 255."""
        labels = list(range(256))
        if self.reduce_zero_label:
            # Like mmseg, which sets 0 to 255, subtracts 1, and sets 254 to 255: 255 stays, and 0 becomes 255.
            labels = [255, *range(254), 255]
        by_loader, by_guard = dict(self.label_map), dict(self.guard_map)
        if by_loader:  # which is a uint8 array
            labels = [apply_label_map(by_loader, label, self.ignore_index) % 256 for label in labels]
        return [apply_label_map(by_guard, label, self.ignore_index) for label in labels] if by_guard else labels

    def find_invalid_values(self) -> Tuple[bool, ...]:
        """Return 256 flags, one per decoded value from 0 to 255: True if its label is invalid."""
        return tuple(not self.is_valid(label) for label in self.table())


def build_settings(options: ScanOptions) -> MapSettings:
    """Return the settings that scan options define for a folder of label maps."""
    return MapSettings(
        num_classes=options.num_classes or 256,
        ignore_index=VOID if options.ignore_index is None else options.ignore_index,
        reduce_zero_label=options.reduce_zero_label,
        label_map=options.label_map,
    )
