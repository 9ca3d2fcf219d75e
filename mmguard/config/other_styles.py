"""Translation of configs of MMDetection 2.x and MMSegmentation 0.x, and a reader of RT-DETR's YAML configs.

Old data set settings are translated to the keys of later versions. From the YAML configs of RT-DETR, D-FINE and DEIM,
only the label settings are read.
"""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mmguard.config.classes import find_class, get_default, get_type_name
from mmguard.config.parts import LOADERS
from mmguard.config.read import ReadConfig
from mmguard.config.recognition import read_text
from mmguard.errors import CannotRun
from mmguard.files.plain_data import NotPlain, parse_data
from mmguard.files.regular import read_regular
from mmguard.labels.numbering import COCO_IDS

#: Settings of mmseg's data sets that have the same names in mmseg 0.x and 1.x.
_KEPT = ('type', 'data_root', 'img_suffix', 'seg_map_suffix', 'ignore_index', 'pipeline', 'test_mode')


def add_loaders(config: ReadConfig) -> ReadConfig:
    """Translate ``data=dict(train=...)`` of an old config to ``train_dataloader`` etc. Return other configs unchanged.

    The result names the same files and classes, so that code that reads data sets needs to support only the
    current style. The translated config is neither written to a file nor shown.
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
    """Translate the settings of a data set, or of a wrapper and its data sets, to the current style."""
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
    """Return the type of a data set, or the stock class that reads its files if its own class is not installed."""
    kind = old.get('type')
    # A class that is not installed can only be replaced if there is an annotation file to read.
    if find_class(kind, 'DATASETS', scope) is not None or (scope != 'mmseg' and not old.get('ann_file')):
        return kind
    lists_xml = str(old.get('ann_file')).endswith('.txt')
    usual = 'BaseSegDataset' if scope == 'mmseg' else 'XMLDataset' if lists_xml else 'CocoDataset'
    if get_type_name(kind) != 'CustomDataset':
        notes.append(f'{get_type_name(kind)} is not installed: its files are read as {usual} would read them')
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
    # mmseg 0.x used reduce_zero_label of the loader in training, and that of the data set in the evaluation.
    usual = False if loaders else get_default(find_class(old['type'], 'DATASETS', 'mmseg'), 'reduce_zero_label')
    new['reduce_zero_label'] = (loaders[0] if loaders else old).get('reduce_zero_label', usual) is True
    return _add_classes(new, old)


def _add_classes(new: Dict[str, Any], old: Dict[str, Any]) -> Dict[str, Any]:
    """Add the classes and the palette of the old config as ``metainfo``, if it sets any."""
    said = {key: old[key] for key in ('classes', 'palette') if old.get(key) is not None}
    return {**new, 'metainfo': said} if said else new


#: Maximum depth of includes.
_DEEPEST = 20
#: Maximum size of an annotation file in bytes.
_LARGEST = 1 << 30
_SPLITS = ('train', 'val')
#: Numbers of outputs of models for COCO: one for each class (80), or for each category id (90, 91).
COCO_COUNTS = (80, 90, 91)


class DetrYaml(NamedTuple):
    """Label settings of a YAML config: number of model outputs, and (split, annotation file, image folder) per split.

    If ``remaps`` is true, a label is the position of the category id in COCO's list (``remap_mscoco_category``).
    """

    num_classes: Optional[int]
    remaps: bool
    files: List[Tuple[str, str, str]]


def is_detr_yaml(path: str) -> bool:
    """Return True if a YAML file has ``__include__`` or ``remap_mscoco_category``, as configs of RT-DETR have."""
    if os.path.splitext(path)[1].lower() not in ('.yml', '.yaml'):
        return False
    try:
        data = _read_data(path)
    except (CannotRun, RecursionError, MemoryError):
        return False
    return '_base_' not in data and ('__include__' in data or 'remap_mscoco_category' in data)


def is_remapped(data: Mapping[str, Any]) -> bool:
    """Return True if ``remap_mscoco_category`` is set, but ``num_classes`` is not a class count of COCO."""
    number = data.get('num_classes')
    return bool(data.get('remap_mscoco_category')) and isinstance(number, int) and number not in COCO_COUNTS


def fits_coco_ids(path: str) -> bool:
    """Return True if all annotation files of a config are readable, and COCO's list turns their ids into valid labels.

    The ids 1..N of a few classes fit by chance: COCO's list turns them into 0..N-1, so `scan` finds no fault.
    """
    try:
        said = read_detr_yaml(path)
        return bool(said.files) and all(_fits(file, said.num_classes or 0) for _, file, _ in said.files)
    except (CannotRun, OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        return False  # a file is unreadable, so its labels are unknown


def _fits(path: str, num_classes: int) -> bool:
    data = json.loads(read_regular(path, _LARGEST))
    listed = {category['id'] for category in data['categories']}
    used = {annotation['category_id'] for annotation in data['annotations']}
    return listed <= set(COCO_IDS) and used <= set(COCO_IDS[:num_classes])


def read_with_includes(path: str, around: Sequence[str] = ()) -> Dict[str, Any]:
    """Read a YAML file with its includes; keys of the file override those of its includes, as in RT-DETR.

    Raises:
        CannotRun: The file, or one that it includes, cannot be read.
    """
    here = os.path.realpath(path)
    if here in around or len(around) >= _DEEPEST:
        raise CannotRun(f'{path} includes itself, or is nested more than {_DEEPEST} includes deep')
    data = _read_data(path)
    names = data.pop('__include__', None) or []
    joined: Dict[str, Any] = {}
    for name in names if isinstance(names, list) else [names]:
        beside = os.path.join(os.path.dirname(path), os.path.expanduser(str(name)))
        _merge_into(joined, read_with_includes(beside, [*around, here]))
    return _merge_into(joined, data)


def read_detr_yaml(path: str) -> DetrYaml:
    """Read the label settings of a YAML config of RT-DETR, D-FINE or DEIM, with its includes."""
    data = read_with_includes(path)
    number, remaps = data.get('num_classes'), data.get('remap_mscoco_category', False)
    files = []
    for split in _SPLITS:
        loader = data.get(f'{split}_dataloader')
        dataset = loader.get('dataset') if isinstance(loader, Mapping) else None
        dataset = dataset if isinstance(dataset, Mapping) else {}
        if isinstance(dataset.get('ann_file'), str):
            folder = dataset.get('img_folder')
            files.append(
                (split, _resolve_path(dataset['ann_file'], path), _resolve_path(folder, path) if folder else '')
            )
    whole = isinstance(number, int) and not isinstance(number, bool) and 0 < number < 1_000_000
    return DetrYaml(number if whole else None, bool(remaps), files)


def _read_data(path: str) -> Dict[str, Any]:
    text = read_text(path)
    if text is None:
        raise CannotRun(f'{path} cannot be read')
    try:
        data = parse_data(text, '.yml')
    except (NotPlain, ValueError) as error:
        raise CannotRun(f'{path} cannot be read: {error}') from error
    if not isinstance(data, dict):
        raise CannotRun(f'{path} has no keys')
    return data


def _merge_into(base: Dict[str, Any], overrides: Mapping[str, Any]) -> Dict[str, Any]:
    for key, value in overrides.items():
        known = base.get(key)
        base[key] = _merge_into(known, value) if isinstance(known, dict) and isinstance(value, Mapping) else value
    return base


def _resolve_path(name: Any, path: str) -> str:
    """Resolve a path from the working directory, as training does, or from the config's folder if it is only there."""
    name = str(name)
    beside = os.path.join(os.path.dirname(path), name)
    return beside if not os.path.exists(name) and os.path.exists(beside) else name
