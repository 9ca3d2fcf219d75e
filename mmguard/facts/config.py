"""Facts about labels that a config states: class counts, class lists and ignored labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, Union

from mmguard.config.agreement import find_class_counts, find_ignored_labels
from mmguard.config.parts import (
    Part,
    find_datasets,
    find_heads,
    find_losses,
    find_transforms,
    get_class_names,
    get_classes_path,
)
from mmguard.config.read import ReadConfig, from_mmengine
from mmguard.facts.labels import ConfigFacts

if TYPE_CHECKING:
    from mmengine.config import Config


def collect_config_facts(config: Union[Config, ReadConfig]) -> ConfigFacts:
    """Collect facts about labels from a config, without building its parts or reading data.

    Args:
        config (Config): A config loaded by mmengine (text or pure Python style), or read by ``read_config``.
    """
    read = config if isinstance(config, ReadConfig) else from_mmengine(config)
    sets = find_datasets(read)
    facts = ConfigFacts(
        framework=read.framework,
        head_classes={count.path: count.value for count in find_class_counts(read)},
        ignore_index={place.path: place.value for place in find_ignored_labels(read)},
        dataset_classes={
            get_classes_path(d): names for d in sets for names in [get_class_names(d)] if names is not None
        },
    )
    facts.heads = {head.path: head.name for head in find_heads(read)}
    facts.losses = {loss.path: loss.name for loss in find_losses(read)}
    for dataset in sets:
        if dataset.split == 'train' and read.framework == 'mmdet':
            filters = (
                {'filter_empty_gt': True, **dataset.config} if dataset.is_old else dataset.config.get('filter_cfg')
            )
            filters = filters if isinstance(filters, dict) else {}
            usual = dataset.is_a('BaseVideoDataset')  # excludes frames without an object by default
            facts.filter_empty_gt[dataset.path] = bool(filters.get('filter_empty_gt', usual))
    for part in sets + [t for t in find_transforms(read) if t.says('reduce_zero_label')]:
        value = part.get('reduce_zero_label')
        if isinstance(value, bool):
            facts.reduce_zero_label[part.place('reduce_zero_label')] = value
    for dataset in sets:
        if dataset.split in ('train', '') and not facts.label_map:
            facts.label_map = find_label_map(dataset)
    return facts


def find_label_map(dataset: Part) -> Dict[int, int]:
    """Return mmseg's {old label: new label} if a data set uses only some classes of its type, else {}."""
    mapper: Any = getattr(dataset.cls, 'get_label_map', None)
    classes = get_class_names(dataset)
    if mapper is None or classes is None:
        return {}
    try:
        return dict(mapper(classes) or {})
    except ValueError:  # rule MG207 reports names that the data set does not have
        return {}
