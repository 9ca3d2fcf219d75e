"""What a user says about labels on the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from mmguard.scan.settings import MapSettings, as_pairs
from mmguard.scan.sources.config import SPLITS


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
    """

    num_classes: Optional[int] = None
    ignore_index: Optional[int] = None
    reduce_zero_label: bool = False
    label_map: Tuple[Tuple[int, int], ...] = ()
    images: Optional[str] = None
    suffix: Optional[str] = None
    splits: Tuple[str, ...] = SPLITS

    def settings(self) -> MapSettings:
        """Of a folder of label maps."""
        return MapSettings(
            num_classes=self.num_classes or 256,
            ignore_index=255 if self.ignore_index is None else self.ignore_index,
            reduce_zero_label=self.reduce_zero_label,
            label_map=self.label_map,
        )


def parse_label_map(text: str) -> Tuple[Tuple[int, int], ...]:
    """Reads ``'7:0,8:1'`` or ``'{"7": 0, "8": 1}'``.

    Raises:
        ValueError: It is neither.

    Example:
        >>> parse_label_map('7:0, 8:1')
        ((7, 0), (8, 1))
    """
    try:
        if text.lstrip().startswith('{'):
            return as_pairs({int(raw): int(label) for raw, label in json.loads(text).items()})
        pairs: Dict[int, int] = {}
        for word in text.split(','):
            raw, label = word.split(':')
            pairs[int(raw)] = int(label)
        return as_pairs(pairs)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f'write a label map as 7:0,8:1 (value in the file:class), got {text!r}') from error
