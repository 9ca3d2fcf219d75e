"""Every config of mmrotate: `apply` guards it, and is final; `check` is silent."""

from __future__ import annotations

import copy
import os.path as osp
import re
from glob import glob
from typing import Any, Dict, Iterator, List, Set, Tuple

import mmrotate_here
import pytest
from config_trees import walk
from mmengine.config import Config

from mmguard.config.read import from_mmengine, import_scope, load_config
from mmguard.errors import CannotRun
from mmguard.findings.engine import diagnose
from mmguard.tools.apply.guarded import build_tree, guard_tree

ROOT = osp.join(osp.dirname(mmrotate_here.mmrotate.__file__), '.mim', 'configs')
#: Nobody can load them: a base that is not there, a package of another name.
BROKEN = (
    'convnext/rotated-retinanet-rbox-le90_convnext-tiny_fpn_kld-stable_adamw-1x_dota.py',
    'gwd/rotated-retinanet-rbox-le135_r50_fpn_gwd_1x_dota.py',
)
#: Written for MMDetection 2.x, which `check` says (MG227), and rightly.
OLD = 's2anet/s2anet-le135_r50_fpn_3x_hrsc.py'
#: What is left, where, and what it names: each is said, nothing else is.
LEFT = {OLD: 'FocalLoss'}  # mmrotate does not have it


def shipped() -> List[str]:
    files = (osp.relpath(file, ROOT) for file in glob(osp.join(ROOT, '**', '*.py'), recursive=True))
    return sorted(file for file in files if '_base_' not in file)


def one_per_folder() -> List[str]:
    return sorted({osp.dirname(name): name for name in reversed(shipped()) if name not in BROKEN}.values())


def holds(name: str) -> None:
    """What is promised of a config."""
    file = osp.join(ROOT, name)
    if name in BROKEN:
        with pytest.raises(CannotRun):
            load_config(file)
        return
    config = load_config(file)
    import_scope(config)
    before = copy.deepcopy(build_tree(config))
    guarded = guard_tree(before)
    assert guard_tree(guarded.tree).changed == [], 'not final'
    for line in guarded.left:
        assert any(name.startswith(where) and named in line for where, named in LEFT.items()), line
    said = {line.partition(':')[0] for line in guarded.left}
    assert set(_unguarded_losses(guarded.tree)) <= said
    packed, kept = _training(guarded.tree)
    assert packed <= kept, (packed, kept)
    expected = {'MG227'} if name == OLD else set()
    for tree in (before, guarded.tree):
        found = diagnose(config=from_mmengine(Config(tree)))
        assert {finding.code for finding in found} <= expected, found


def _unguarded_losses(tree: Dict[str, Any]) -> Iterator[str]:
    for path, node in walk(tree.get('model'), 'model'):
        path = re.sub(r'\[\d+\]$', '', path)
        name = path.rpartition('.')[2]
        if name in ('loss_cls', 'loss_decode', 'loss_ce', 'loss_lovasz', 'cls_loss', 'semantic_loss', 'loss_seg'):
            kind = str(node.get('type', '')) if isinstance(node, dict) else ''
            if kind and 'Guarded' not in kind and 'GaussianFocalLoss' not in kind:
                yield path


def _training(tree: Dict[str, Any]) -> Tuple[Set[str], Set[str]]:
    """The guards that the labels which a training packs need, and those that it has."""
    packed: Set[str] = set()
    kept: Set[str] = set()
    for _, node in walk(tree.get('train_dataloader'), ''):
        kind = str(node.get('type', '')).rpartition('.')[2] if isinstance(node, dict) else ''
        if kind == 'PackDetInputs':
            packed.add('GuardInstanceLabels')
        if kind.startswith('Guard'):
            kept.add(kind)
    return packed, kept
