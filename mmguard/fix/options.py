"""What a mended label must be, as the command line says it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Dict, Optional, Tuple

from mmguard.errors import CannotRun
from mmguard.labels import LabelMap


@dataclass(frozen=True)
class FixOptions:
    """What is valid, and what becomes of the rest.

    Args:
        num_classes (int, optional): Label maps: valid are ``[0, num_classes)`` and ``ignore_index``.
        ignore_index (int): What invalid pixels become.
        label_map (dict[int, int]): Value as stored -> class (COCO: category id -> category id), applied first.
        on_invalid (str): Of pixels: ``'ignore'`` or ``'clip'``. Instances with an invalid label or box are dropped.
        classes (tuple[str], optional): Names that VOC objects may have; ``None``: any.
    """

    num_classes: Optional[int] = None
    ignore_index: int = 255
    label_map: Dict[int, int] = field(default_factory=dict)
    on_invalid: str = 'ignore'
    classes: Optional[Tuple[str, ...]] = None

    def to_json(self) -> Dict[str, Any]:
        record = asdict(self)
        record['label_map'] = {str(raw): label for raw, label in self.label_map.items()}
        record['classes'] = None if self.classes is None else list(self.classes)
        return record


def as_label_map(label_map: Dict[int, int]) -> LabelMap:
    """For ``LabelRule``, whose keys may also be text."""
    return dict(label_map.items())


class NotMended(Exception):
    """A file that is left out, and why."""


class CannotMend(CannotRun):
    """Nothing can be mended, and why."""
