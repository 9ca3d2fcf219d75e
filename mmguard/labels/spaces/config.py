"""What a config says is valid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional

from mmguard.labels import OTHERS
from mmguard.labels.spaces.heads import label_spaces
from mmguard.labels.spaces.space import VOID, LabelSpaces, Space

if TYPE_CHECKING:
    from mmguard.config.read import ReadConfig

#: Transform -> the labels that it guards.
GUARDS = {'GuardSegLabels': 'pixels', 'GuardInstanceLabels': 'instances'}


def from_config(config: ReadConfig, split: Optional[str] = None, imports: bool = True) -> LabelSpaces:
    """Which labels are valid by a config tree: as its heads say. Nothing is built.

    Args:
        config (ReadConfig): It.
        split (str, optional): ``'train'``, ``'val'`` or ``'test'``: what the guards in the pipelines of this split say
            goes before the heads, and the names are those of its data set. ``None``: the heads alone.
        imports (bool): Whether the classes that it names may be looked up, for their defaults. Looking one up imports
            its module: ``False`` for a config that came from anywhere.
    """
    from mmguard.config.parts import classes_of, classes_path, datasets, heads, transforms

    def looked_up(part: Any) -> Any:
        return part if imports else replace(part, imports=False)

    names, named_at = [], ''
    for dataset in map(looked_up, datasets(config)):
        if dataset.split == (split or 'train'):
            names, named_at = classes_of(dataset) or [], classes_path(dataset)
            if names:
                break
    spaces = label_spaces(map(looked_up, heads(config)), names, named_at)
    if split is None:
        return spaces
    guards: Dict[str, Any] = {}
    for transform in map(looked_up, transforms(config)):
        kind = GUARDS.get(transform.name)
        if kind is not None and transform.split == split and isinstance(transform.config.get('num_classes'), int):
            guards.setdefault(kind, _of_guard(kind, transform.config, transform.at('num_classes')))
    return spaces.given(LabelSpaces(**guards))


def _of_guard(kind: str, guard: Mapping[str, Any], place: str) -> Space:
    ignored = guard.get('ignore_index', VOID) if kind == 'pixels' else None
    return Space(
        kind, guard['num_classes'], place, ignored, guard.get('min_label', 0), label_map_of(guard.get('label_map'))
    )


def label_map_of(said: Any) -> Dict[int, int]:
    """Raw value -> class, as far as it is named; empty where it is none."""
    try:
        return {int(raw): int(label) for raw, label in (said or {}).items() if raw != OTHERS}
    except (AttributeError, TypeError, ValueError):
        return {}
