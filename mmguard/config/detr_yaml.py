"""Reader of the label settings in YAML configs of RT-DETR, D-FINE and DEIM; nothing is executed."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from mmguard.config.recognition import read_text
from mmguard.errors import CannotRun
from mmguard.files.plain_data import NotPlain, parse_data
from mmguard.files.regular import read_regular
from mmguard.labels.numbering import COCO_IDS

#: Deepest chain of includes.
_DEEPEST = 20
#: Maximum size of an annotation file that is read.
_LARGEST = 1 << 30
_SPLITS = ('train', 'val')
#: Numbers of outputs of models for COCO's classes: one for each class, or for each id.
COCO_COUNTS = (80, 90, 91)


class DetrYaml(NamedTuple):
    """A config with its includes: number of model outputs, and annotation file and image folder per split.

    ``remaps``: labels are positions among COCO's own ids (``remap_mscoco_category``, off by default).
    """

    num_classes: Optional[int]
    remaps: bool
    files: List[Tuple[str, str, str]]


def is_detr_yaml(path: str) -> bool:
    """Return True if a file is a config of this family: it, or an included file, names a JSON."""
    if os.path.splitext(path)[1].lower() not in ('.yml', '.yaml'):
        return False
    try:
        data = _read_data(path)
    except (CannotRun, RecursionError, MemoryError):
        return False
    return '_base_' not in data and ('__include__' in data or 'remap_mscoco_category' in data)


def is_remapped(data: Mapping[str, Any]) -> bool:
    """Return True if labels are looked up among COCO's ids although the model has other classes."""
    number = data.get('num_classes')
    return bool(data.get('remap_mscoco_category')) and isinstance(number, int) and number not in COCO_COUNTS


def fits_coco_ids(path: str) -> bool:
    """Return True if all annotation files of a config are readable and COCO's table gives them valid labels.

    Some sets fit by chance, and `scan` finds nothing: numbering a few classes from 1 gives 0..N-1.
    """
    try:
        said = read_detr_yaml(path)
        return bool(said.files) and all(_fits(file, said.num_classes or 0) for _, file, _ in said.files)
    except (CannotRun, OSError, ValueError, KeyError, TypeError, RecursionError, MemoryError):
        return False  # nothing is known about the other files


def _fits(path: str, num_classes: int) -> bool:
    data = json.loads(read_regular(path, _LARGEST))
    listed = {category['id'] for category in data['categories']}
    used = {annotation['category_id'] for annotation in data['annotations']}
    return listed <= set(COCO_IDS) and used <= set(COCO_IDS[:num_classes])


def read_with_includes(path: str, around: Sequence[str] = ()) -> Dict[str, Any]:
    """Read a file with its includes; its own keys take precedence, as in those repositories.

    Raises:
        CannotRun: The file, or one that it includes, cannot be read.
    """
    here = os.path.realpath(path)
    if here in around or len(around) >= _DEEPEST:
        raise CannotRun(f'{path} includes itself, or is included too deeply')
    data = _read_data(path)
    names = data.pop('__include__', None) or []
    joined: Dict[str, Any] = {}
    for name in names if isinstance(names, list) else [names]:
        beside = os.path.join(os.path.dirname(path), os.path.expanduser(str(name)))
        _merge_into(joined, read_with_includes(beside, [*around, here]))
    return _merge_into(joined, data)


def read_detr_yaml(path: str) -> DetrYaml:
    """Read a config with its includes."""
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
    """Return a path relative to the working directory, as training does, else relative to the config."""
    name = str(name)
    beside = os.path.join(os.path.dirname(path), name)
    return beside if not os.path.exists(name) and os.path.exists(beside) else name
