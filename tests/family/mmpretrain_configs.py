"""What is true of every config that ships with mmpretrain: `apply` guards it, and is final; `check` finds nothing."""

from __future__ import annotations

import os.path as osp
from glob import glob
from typing import Any, Dict, Iterator, List

import mmpretrain
import mmpretrain.models
from config_trees import type_of, walk
from mmengine.config import Config
from mmpretrain.registry import MODELS

from mmguard.config.changes import name_types
from mmguard.config.read import ReadConfig, import_scope, load_config
from mmguard.errors import CannotRun
from mmguard.findings.engine import diagnose
from mmguard.tools.apply.guarded import build_tree, guard_tree

ROOT = osp.join(osp.dirname(mmpretrain.__file__), '.mim', 'configs')
#: No config, but a list of transforms.
NO_CONFIG = '_randaug_policies'
#: Findings that hold: heads of ImageNet-21k beside a data set of ImageNet-1k; a data set in the style of mmcls 0.x.
TRUE_FINDINGS = {'_in21k': 'MG201', 'vit-base-p16_4xb544-ipu': 'MG227'}
#: Losses between images or features: no label reaches them.
WITHOUT_LABELS = (
    'CAELoss',
    'CosineSimilarityLoss',
    'CrossCorrelationLoss',
    'PixelReconstructionLoss',
    'SwAVLoss',
    'L1Loss',
)
GUARD, PACK = 'GuardClsLabels', 'PackInputs'


def shipped() -> List[str]:
    files = glob(osp.join(ROOT, '**', '*.py'), recursive=True)
    names = sorted(osp.relpath(file, ROOT) for file in files)
    return [name for name in names if not name.startswith('_base_')]


def one_of_each_folder() -> List[str]:
    return list({osp.dirname(name): name for name in reversed(shipped())}.values())


def check(name: str) -> bool:
    """Whether a config was guarded; what cannot be loaded is not."""
    try:
        tree = build_tree(load_config(osp.join(ROOT, name)))
    except CannotRun:
        assert NO_CONFIG in name or not loads_in_mmengine(name), name
        return False
    if 'model' not in tree:
        return False
    import_scope(tree)
    guarded = guard_tree(tree)
    assert guard_tree(guarded.tree).changed == [], name
    said = '\n'.join(guarded.left)
    for place in unguarded(guarded.tree):
        assert place in said or not has_classes(tree, place), (name, place, said)
    takes_labels = is_classification(tree)
    behind = list(guards(guarded.tree))
    assert bool(behind) == takes_labels, (name, behind)
    for guard in behind:
        assert guard['num_classes'] == number_of_classes(tree), name
    known = next((code for part, code in TRUE_FINDINGS.items() if part in name), None)
    for looked_at in (tree, guarded.tree):
        found = {finding.code for finding in diagnose(config=ReadConfig(name_types(looked_at)))}
        assert found <= {known}, (name, found)
    return True


def loads_in_mmengine(name: str) -> bool:
    """Four have a base that imports a function; two name a `test_pipeline` of a base, which is not there."""
    try:
        Config.fromfile(osp.join(ROOT, name))
    except (RuntimeError, KeyError):
        return False
    return True


def is_classification(tree: Dict[str, Any]) -> bool:
    """By the names of mmpretrain: all heads of classifiers are called so."""
    head = type_of(tree['model'].get('head'))
    packs = any(type_of(node) == PACK for _, node in walk(tree, ''))
    return packs and head != 'ArcFaceClsHead' and (head.endswith('ClsHead') or head == 'ConformerHead')


def has_classes(tree: Dict[str, Any], place: str) -> bool:
    """Return True if the labels there, if it is a pipeline, are classes."""
    bases = [base.__name__ for base in MODELS.get(type_of(tree['model'])).__mro__]
    return place.startswith('model') or not any('SelfSup' in base or 'BaseRetriever' in base for base in bases)


def number_of_classes(tree: Dict[str, Any]) -> int:
    """Of the head, else of the backbone, which classifies where the head is bare."""
    model = tree['model']
    return model['head'].get('num_classes') or model['backbone']['num_classes']


def guards(tree: Any) -> Iterator[Dict[str, Any]]:
    return (node for _, node in walk(tree, '') if type_of(node) == GUARD)


def unguarded(tree: Dict[str, Any]) -> Iterator[str]:
    """The pipelines that pack labels without a guard right behind, and the losses of labels without one."""
    for path, node in walk(tree, ''):
        steps = [type_of(step) for step in node] if isinstance(node, list) else []
        gallery = path.startswith('model.')  # what a retrieval compares with, and trains on by no loss
        if PACK in steps and not gallery and steps[steps.index(PACK) + 1 :][:1] != [GUARD]:
            yield path
        is_loss = path.rpartition('.')[2].startswith('loss') and path.startswith('model') and type_of(node)
        inside = path.endswith('.loss.loss')
        if is_loss and not inside and 'Guarded' not in type_of(node) and type_of(node) not in WITHOUT_LABELS:
            yield path
