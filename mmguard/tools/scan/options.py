"""What a user says about labels on the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional, Tuple

from mmguard.tools.scan.settings import MapSettings, Pairs
from mmguard.tools.scan.sources.config import SPLITS


@dataclass(frozen=True)
class ScanOptions:
    """What no config says, or what is to be looked at.

    Args:
        num_classes (int, optional): Number of classes. ``None``: what the config says, else every value is valid.
        ignore_index (int, optional): ``None``: what the config says, else 255.
        reduce_zero_label (bool): As the data set's argument; for a folder.
        label_map (tuple): As the data set's; for a folder.
        images (str, optional): Folder of the images; for a folder.
        suffix (str, optional): How label files end; for a folder.
        splits (tuple[str]): Of a config.
        labels (str, optional): ``'positions'`` or ``'ids'``: what a label is; for a COCO JSON.
        framework (str, optional): Who trains on it, a key of :data:`~mmguard.labels.numbering.FRAMEWORKS`; for a COCO
            JSON.
        classes (tuple[str], optional): Names of the classes, in their order; of Labelme and VOC.
        masks (bool): Masks of a COCO JSON are read, too; a config that trains them asks for it itself.
        run_code (bool): A config in YAML or JSON may name code.
    """

    num_classes: Optional[int] = None
    ignore_index: Optional[int] = None
    reduce_zero_label: bool = False
    label_map: Pairs = ()
    images: Optional[str] = None
    suffix: Optional[str] = None
    splits: Tuple[str, ...] = SPLITS
    labels: Optional[str] = None
    framework: Optional[str] = None
    masks: bool = False
    classes: Optional[Tuple[str, ...]] = None
    run_code: bool = False

    def words(self) -> List[str]:
        """The words of a command line that say the same."""
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
        """Of a folder of label maps."""
        return MapSettings(
            num_classes=self.num_classes or 256,
            ignore_index=255 if self.ignore_index is None else self.ignore_index,
            reduce_zero_label=self.reduce_zero_label,
            label_map=self.label_map,
        )
