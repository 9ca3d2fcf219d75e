"""Valid labels according to a config's heads and guards; see :mod:`mmguard.labels.spaces` for the rest."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

from mmguard.config.parts import find_datasets, find_heads, find_transforms, get_class_names, get_classes_path
from mmguard.config.read import ReadConfig
from mmguard.labels.heads import collect_label_spaces
from mmguard.labels.spaces import VOID, LabelSpaces, Space, read_label_map

#: Transform -> the labels that it guards.
GUARD_KINDS = {'GuardSegLabels': 'pixels', 'GuardInstanceLabels': 'instances'}


def from_config(config: ReadConfig, split: Optional[str] = None) -> LabelSpaces:
    """Read the valid labels from the heads of a config tree, without building anything.

    Args:
        config (ReadConfig): The config.
        split (str, optional): ``'train'``, ``'val'`` or ``'test'``: the guards in the pipelines of this split
            take precedence over the heads, and the names are those of its data set. ``None``: only the heads.
    """
    names, named_at = [], ''
    for dataset in find_datasets(config):
        if dataset.split == (split or 'train'):
            names, named_at = get_class_names(dataset) or [], get_classes_path(dataset)
            if names:
                break
    spaces = collect_label_spaces(find_heads(config), names, named_at)
    if split is None:
        return spaces
    guards: Dict[str, Any] = {}
    for transform in find_transforms(config):
        kind = GUARD_KINDS.get(transform.name)
        if kind is not None and transform.split == split and isinstance(transform.config.get('num_classes'), int):
            of_heads = None if transform.written else spaces.get(kind)  # a hook takes the number of the heads
            place = transform.place('num_classes') if of_heads is None else of_heads.place
            guards.setdefault(kind, _read_guard(kind, transform.config, place))
    return spaces.override(LabelSpaces(**guards))


def _read_guard(kind: str, guard: Mapping[str, Any], place: str) -> Space:
    ignored = guard.get('ignore_index', VOID) if kind == 'pixels' else None
    return Space(
        kind, guard['num_classes'], place, ignored, guard.get('min_label', 0), read_label_map(guard.get('label_map'))
    )
