"""Valid labels and their origin: a head, a run's record, an option.

:func:`mmguard.config.label_spaces.from_config` returns those of a config tree,
:func:`mmguard.labels.heads.from_model` those of a built model. Nothing here needs mmengine or torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Collection, Dict, List, Mapping, Optional, Tuple

from mmguard.labels import OTHERS, VOID
from mmguard.labels.instances import InstanceRule
from mmguard.labels.rules import BaseRule, LabelRule, ValidLabels

KINDS = ('pixels', 'instances')

OPTION = '--num-classes'


@dataclass(frozen=True)
class Space(ValidLabels):
    """Labels of one kind accepted at one place."""

    kind: str  #: ``'pixels'`` or ``'instances'``.
    num_classes: int  #: Number of classes, without a background after the last one.
    place: str  #: Origin of the number: ``'model.decode_head.num_classes'``.
    ignore_index: Optional[int] = None  #: For label maps.
    min_label: int = 0  #: 1 if a detector reserves 0 for the background.
    label_map: Mapping[int, int] = field(default_factory=dict)  #: Raw value -> class, as a guard maps it.

    def build_rule(self, on_invalid: str = 'ignore') -> BaseRule:
        """Build the rule that finds invalid labels, without ``label_map``."""
        if self.kind == 'instances':
            return InstanceRule(self.num_classes, on_invalid, min_label=self.min_label)
        return LabelRule(self.num_classes, VOID if self.ignore_index is None else self.ignore_index, on_invalid)

    def to_json(self) -> Dict[str, Any]:
        """Convert to plain data for a run's record."""
        return {'kind': self.kind, 'num_classes': self.num_classes, 'ignore_index': self.ignore_index}


@dataclass(frozen=True)
class LabelSpaces:
    """Valid labels by kind; ``None`` if nothing takes labels of that kind."""

    pixels: Optional[Space] = None  #: For label maps.
    instances: Optional[Space] = None  #: For boxes and masks.
    heads: Tuple[Space, ...] = ()  #: Spaces of all heads, including the two above.
    names: Tuple[str, ...] = ()  #: Class names of the data set; empty if unknown.

    def get(self, kind: str) -> Optional[Space]:
        return self.instances if kind == 'instances' else self.pixels

    def to_dict(self) -> Dict[str, Space]:
        """Return kind -> space, without kinds that have none."""
        return {kind: space for kind in KINDS for space in [self.get(kind)] if space is not None}

    def override(self, other: LabelSpaces) -> LabelSpaces:
        """Return a copy in which ``other`` overrides the heads."""
        return replace(self, **{name: value for name, value in vars(other).items() if value})

    def find_disagreeing(self, kind: str) -> List[Space]:
        """Return the heads of a kind if their numbers of classes differ."""
        found = [space for space in self.heads if space.kind == kind]
        return found if len({space.num_classes for space in found}) > 1 else []


def from_options(
    num_classes: Optional[int] = None, ignore_index: Optional[int] = None, default: Optional[LabelSpaces] = None
) -> LabelSpaces:
    """Apply the user's options, which override everything else.

    Args:
        num_classes (int, optional): For label maps and instances.
        ignore_index (int, optional): For label maps.
        default (LabelSpaces, optional): Valid labels without options.

    Example:
        >>> from_options(num_classes=19).pixels.is_valid(255)
        True
    """
    spaces = default or LabelSpaces()
    pixels, instances = spaces.pixels, spaces.instances
    if num_classes is not None:
        pixels = replace(pixels or Space('pixels', 0, '', VOID), num_classes=num_classes, place=OPTION)
        instances = replace(instances or Space('instances', 0, ''), num_classes=num_classes, place=OPTION)
    if pixels is not None and ignore_index is not None:
        pixels = replace(pixels, ignore_index=ignore_index)
    return replace(spaces, pixels=pixels, instances=instances)


def read_label_map(record: Any) -> Dict[int, int]:
    """Read a label map, raw value -> class, without the key ``'*'``; empty if it is not a label map."""
    try:
        return {int(raw): int(label) for raw, label in (record or {}).items() if raw != OTHERS}
    except (AttributeError, TypeError, ValueError):
        return {}


def from_record(record: Mapping[str, Any], offended: Collection[str] = ()) -> LabelSpaces:
    """Read which labels were valid in a loop: from its guards, or from a loss that met invalid ones.

    Args:
        record (dict): The mode of the loop in ``label_guard.json``. May hold anything.
        offended (collection[str]): Names of the losses that met invalid labels.
    """
    guards, losses = record.get('guards'), record.get('losses')
    guards = guards if isinstance(guards, list) else []
    named = losses.items() if isinstance(losses, dict) else ()
    given = [(guard, 'the guard in the pipeline') for guard in _list_dicts(guards)]
    given += [(space, name) for name, loss in named if name in offended for space in _list_dicts(loss)]
    found: Dict[str, Any] = {}
    for one, place in given:
        number, ignored, first = (one.get(key) for key in ('num_classes', 'ignore_index', 'min_label'))
        for kind in KINDS:
            if isinstance(number, int) and one.get('kind') in (None, kind):
                ignored = ignored if isinstance(ignored, int) else None
                first = first if isinstance(first, int) else 0
                label_map = read_label_map(one.get('label_map'))
                found.setdefault(kind, Space(kind, number, place, ignored, first, label_map))
    names = record.get('classes')
    return LabelSpaces(**found, names=tuple(map(str, names)) if isinstance(names, list) else ())


def _list_dicts(value: Any) -> List[Dict[str, Any]]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
