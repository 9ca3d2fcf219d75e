"""Translation of MMDetection 2.x and MMSegmentation 0.x data sets to the keys of later versions."""

from __future__ import annotations

from typing import Any, Dict, List

from mmguard.config.classes import find_class, get_default, get_type_name
from mmguard.config.parts import LOADERS
from mmguard.config.read import ReadConfig

#: Settings of mmseg's data sets that have kept their names.
_KEPT = ('type', 'data_root', 'img_suffix', 'seg_map_suffix', 'ignore_index', 'pipeline', 'test_mode')


def add_loaders(config: ReadConfig) -> ReadConfig:
    """Return a config with ``train_dataloader`` etc. in place of ``data=dict(train=...)``; a current one unchanged.

    It names the same files and classes, so that readers of data sets need to support only one generation. It is neither
    written nor shown.
    """
    if not config.is_old:
        return config
    notes: List[str] = []
    loaders = {
        loader: dict(dataset=_translate_dataset(config.data['data'][split], config.scope, split, notes))
        for split, loader in LOADERS.items()
        if isinstance(config.data['data'].get(split), (dict, list, tuple))
    }
    data = {key: value for key, value in config.data.items() if key != 'data'}
    return ReadConfig(
        {**loaders, **data, 'default_scope': config.scope}, config.file, [*config.notes, *dict.fromkeys(notes)]
    )


def _translate_dataset(old: Any, scope: str, split: str, notes: List[str]) -> Dict[str, Any]:
    """Translate a data set, keeping its wrappers."""
    if isinstance(old, (list, tuple)):
        return dict(type='ConcatDataset', datasets=[_translate_dataset(one, scope, split, notes) for one in old])
    inner = next((key for key in ('dataset', 'datasets') if isinstance(old.get(key), (dict, list, tuple))), None)
    if inner is not None:
        value = old[inner]
        parts = value if inner == 'datasets' and _is_list(value) else [value]
        sets = [_translate_dataset(one, scope, split, notes) for one in parts]
        return {**old, inner: sets if parts is value else sets[0]}
    several = [key for key in ('ann_file', 'img_prefix', 'img_dir', 'ann_dir', 'split') if _is_list(old.get(key))]
    if several:
        count = max(len(old[key]) for key in several)
        parts = [
            {**old, **{key: old[key][min(at, len(old[key]) - 1)] for key in several if old[key]}} for at in range(count)
        ]
        return _translate_dataset(parts, scope, split, notes)
    leaf = dict(old, type=_choose_type(old, scope, notes))
    return _translate_maps(leaf) if scope == 'mmseg' else _translate_boxes(leaf, split)


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _choose_type(old: Dict[str, Any], scope: str, notes: List[str]) -> Any:
    """Return the type if the current framework has it, else the class that reads this kind of file."""
    kind = old.get('type')
    # Without an annotation file nothing says that a class that is not installed reads one.
    if find_class(kind, 'DATASETS', scope) is not None or (scope != 'mmseg' and not old.get('ann_file')):
        return kind
    lists_xml = str(old.get('ann_file')).endswith('.txt')
    usual = 'BaseSegDataset' if scope == 'mmseg' else 'XMLDataset' if lists_xml else 'CocoDataset'
    if get_type_name(kind) != 'CustomDataset':
        notes.append(f'{get_type_name(kind)} is not installed: its files are read as those of {usual}')
    return usual


def _translate_boxes(old: Dict[str, Any], split: str) -> Dict[str, Any]:
    is_voc = str(old.get('ann_file')).endswith('.txt')
    prefix = {'sub_data_root' if is_voc else 'img': old.get('img_prefix') or ''}
    if isinstance(old.get('seg_prefix'), str):
        prefix['seg'] = old['seg_prefix']
    filters: Dict[str, Any] = dict(filter_empty_gt=old.get('filter_empty_gt', True), min_size=32)
    if is_voc and old.get('min_size'):
        filters['bbox_min_size'] = old['min_size']
    kept = {key: old[key] for key in ('type', 'data_root', 'ann_file', 'img_subdir', 'ann_subdir') if old.get(key)}
    new: Dict[str, Any] = dict(
        kept, data_prefix=prefix, filter_cfg=filters, test_mode=split != 'train', pipeline=old.get('pipeline') or []
    )
    return _add_classes(new, old)


def _translate_maps(old: Dict[str, Any]) -> Dict[str, Any]:
    kept = {key: old[key] for key in _KEPT if old.get(key) is not None}
    places = dict(img_path=old.get('img_dir') or '', seg_map_path=old.get('ann_dir') or '')
    new = dict(kept, data_prefix=places, ann_file=old.get('split') or '')
    steps = [one for one in old.get('pipeline') or () if isinstance(one, dict)]
    loaders = [one for one in steps if get_type_name(one.get('type')) == 'LoadAnnotations']
    if not loaders:  # the evaluation loaded the labels outside of the pipeline
        new['pipeline'] = [dict(type='LoadAnnotations'), *steps]
    # In training only the loader's reduce_zero_label counted, in the evaluation only that of the data set.
    usual = False if loaders else get_default(find_class(old['type'], 'DATASETS', 'mmseg'), 'reduce_zero_label')
    new['reduce_zero_label'] = (loaders[0] if loaders else old).get('reduce_zero_label', usual) is True
    return _add_classes(new, old)


def _add_classes(new: Dict[str, Any], old: Dict[str, Any]) -> Dict[str, Any]:
    """Add the old config's classes, if it has any."""
    said = {key: old[key] for key in ('classes', 'palette') if old.get(key) is not None}
    return {**new, 'metainfo': said} if said else new
