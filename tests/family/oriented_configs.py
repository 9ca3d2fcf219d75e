"""What is true of every config of mmrotate and mmdet3d: `apply` guards it, and is final; `check` is silent."""

from __future__ import annotations

import copy
import os.path as osp
import re
from glob import glob
from typing import Any, Dict, Iterator, List, Set, Tuple

import mmdet3d
import mmrotate_here
import pytest
from config_trees import walk
from mmengine.config import Config

from mmguard.config.read import from_mmengine, import_scope, load_config
from mmguard.errors import CannotRun
from mmguard.findings.engine import diagnose
from mmguard.tools.apply.guarded import guard_tree, tree_of

ROOTS = {
    name: osp.join(osp.dirname(module.__file__), '.mim', 'configs')
    for name, module in (('mmrotate', mmrotate_here.mmrotate), ('mmdet3d', mmdet3d))
}
#: Nobody can load them: a base that is not there, a package of another name.
BROKEN = (
    'convnext/rotated-retinanet-rbox-le90_convnext-tiny_fpn_kld-stable_adamw-1x_dota.py',
    'gwd/rotated-retinanet-rbox-le135_r50_fpn_gwd_1x_dota.py',
    'mvfcos3d/multiview-fcos3d_r101-dcn_centerhead_16xb2_waymoD5-3d-3class.py',
)
#: Written for MMDetection 2.x, which `check` says (MG227), and rightly.
OLD = ('nuimages/', 's2anet/s2anet-le135_r50_fpn_3x_hrsc.py')
#: What is left, where, and what it names: each is said, nothing else is. Anchor3DHead looks at the type of its loss.
LEFT = {
    's2anet/s2anet-le135_r50_fpn_3x_hrsc.py': 'FocalLoss',  # mmrotate does not have it
    'groupfree3d/': 'pts_semantic_mask',
    'h3dnet/': 'pts_semantic_mask',
    'votenet/': 'pts_semantic_mask',
    'free_anchor/p': 'bbox_head',
    'free_anchor/pointpillars_hv_regnet-3.2gf_fpn_head-free-anchor_sbn-all_8xb4-strong': 'Collect3D',
    'pointpillars/pointpillars_hv_secfpn_sbn-all_16xb2-2x_waymo': "keys=['points']",
    '': 'bbox_head.loss_cls',
    **dict.fromkeys(['benchmark/', 'mvfcos3d/', 'parta2/', 'pv_rcnn/'], 'Head looks at its type'),
}
LABELS = {'gt_labels_3d', 'gt_bboxes_labels', 'pts_semantic_mask'}


def shipped(framework: str) -> List[str]:
    root = ROOTS[framework]
    files = (osp.relpath(file, root) for file in glob(osp.join(root, '**', '*.py'), recursive=True))
    return sorted(file for file in files if '_base_' not in file)


def one_per_folder(framework: str) -> List[str]:
    return sorted({osp.dirname(name): name for name in reversed(shipped(framework)) if name not in BROKEN}.values())


def holds(framework: str, name: str) -> None:
    """What is promised of a config."""
    file = osp.join(ROOTS[framework], name)
    if name in BROKEN:
        with pytest.raises(CannotRun):
            load_config(file)
        return
    config = load_config(file)
    import_scope(config)
    before = copy.deepcopy(tree_of(config))
    guarded = guard_tree(before)
    assert guard_tree(guarded.tree).changed == [], 'not final'
    for line in guarded.left:
        assert any(name.startswith(where) and named in line for where, named in LEFT.items()), line
    said = {line.partition(':')[0] for line in guarded.left}
    assert set(_unguarded_losses(guarded.tree)) <= said
    packed, kept = _training(guarded.tree)
    assert packed <= kept, (packed, kept)
    if not name.startswith(OLD) and framework == 'mmdet3d':
        assert packed or guarded.left, name
    expected = {'MG227'} if name.startswith(OLD) else set()
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
    seg = 'decode_head' in tree['model']
    for _, node in walk(tree.get('train_dataloader'), ''):
        kind = str(node.get('type', '')).rpartition('.')[2] if isinstance(node, dict) else ''
        if kind == 'PackDetInputs' or (kind == 'Pack3DDetInputs' and LABELS & set(node['keys'])):
            packed.add('GuardSegLabels' if seg else 'GuardInstanceLabels')
        if kind.startswith('Guard'):
            kept.add(kind)
        if kind == 'PointSegClassMapping':
            packed.add('GuardedPointSegClassMapping')
    return packed, kept
