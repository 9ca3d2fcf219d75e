"""Pretrained weights that a config names."""

from __future__ import annotations

import copy
import os
from typing import Any, List, Tuple

from mmguard.config.classes import get_type_name
from mmguard.config.tree import walk


def is_missing(checkpoint: str) -> bool:
    """Return True if weights would have to be downloaded, or if their file does not exist."""
    return '://' in checkpoint or not os.path.exists(checkpoint)


def drop_pretrained(model: Any) -> Tuple[Any, List[str]]:
    """Copy a model's config without weights that are absent; also return their names."""
    kept, dropped = copy.deepcopy(model), []
    for _, node in walk(kept):
        for key in ('pretrained', 'teacher_ckpt'):
            if isinstance(node.get(key), str) and is_missing(node[key]):
                dropped.append(node[key])
                node[key] = None
        entries = node.get('init_cfg')
        if isinstance(entries, (dict, list, tuple)):
            listed = [entries] if isinstance(entries, dict) else list(entries)
            loaded = [one for one in listed if get_type_name(one.get('type')) == 'Pretrained']
            absent = [one for one in loaded if is_missing(str(one.get('checkpoint')))]
            dropped += [str(one.get('checkpoint')) for one in absent]
            node['init_cfg'] = [one for one in listed if one not in absent] or None
    return kept, dropped
