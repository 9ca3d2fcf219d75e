"""What is true of every config that ships with mmyolo: `apply` guards it, and is final; `check` finds nothing."""

from __future__ import annotations

import os.path as osp
from glob import glob
from typing import Any, Dict, Iterator, List, NamedTuple

import mmyolo_here
from config_trees import type_of, walk

from mmguard.config.read import from_mmengine, load_config
from mmguard.errors import CannotRun
from mmguard.findings.engine import diagnose
from mmguard.tools.apply.guarded import build_tree, guard_tree

ROOT = osp.join(osp.dirname(mmyolo_here.mmyolo.__file__), '.mim', 'configs')
#: Parts of configs, settings of deployment, and what needs packages that are not there: mmrazor, mmcls.
NO_TRAINING = ('_base_/', 'deploy/', 'razor/', 'rtmdet/cspnext_imagenet_pretrain/', 'yolox/yolox_p5_tta.py')
#: The heads stand in the config of the student, which these name.
DISTILLED = 'rtmdet/distillation/'
#: Losses without labels: of mmrotate, which another package may keep from being imported, and of mmrazor.
WITHOUT_LABELS = ('RotatedIoULoss', 'ChannelWiseDivergence')
GUARD = 'GuardInstanceLabels'


class Outcome(NamedTuple):
    """What came of a config: why it does not load, what was guarded and left, what `check` found."""

    name: str
    error: str
    changed: List[str]
    left: List[str]
    unguarded: List[str]
    findings: List[str]


def shipped() -> List[str]:
    files = glob(osp.join(ROOT, '**', '*.py'), recursive=True)
    return sorted(osp.relpath(file, ROOT) for file in files)


def outcome(name: str) -> Outcome:
    try:
        config = load_config(osp.join(ROOT, name))
        if config.get('model') is None:
            return Outcome(name, 'no model', [], [], [], [])
    except CannotRun as error:
        return Outcome(name, str(error), [], [], [], [])
    guarded = guard_tree(build_tree(config))
    again = guard_tree(guarded.tree).changed
    assert again == [], (name, again)
    findings = diagnose(config=from_mmengine(config))
    return Outcome(
        name,
        '',
        guarded.changed,
        guarded.left,
        list(unguarded(guarded.tree)),
        [f'{finding.code} {finding.places}' for finding in findings],
    )


def holds(found: Outcome) -> None:
    """What is promised of a config."""
    if found.name.startswith(NO_TRAINING):
        return
    assert not found.error, found
    assert not found.findings, found
    said = [line for line in found.left if not any(name in line for name in WITHOUT_LABELS)]
    if found.name.startswith(DISTILLED):
        assert set(found.unguarded) <= {line.partition(':')[0] for line in said}, found
    else:
        assert (found.unguarded, said) == ([], []), found
        assert sum('train_dataloader' in line and GUARD in line for line in found.changed) >= 1, found


def unguarded(tree: Dict[str, Any]) -> Iterator[str]:
    """The pipelines that pack labels without a guard behind, and the classification losses without one."""
    for path, node in walk(tree, ''):
        if isinstance(node, list) and any(type_of(step) == 'PackDetInputs' for step in node):
            behind = [type_of(step) for step in node][[type_of(step) for step in node].index('PackDetInputs') + 1 :]
            if GUARD not in behind and not is_augmented(tree, path):
                yield path
        if path.startswith('model') and path.endswith(('.loss_cls', '.loss_obj')) and not _is_guarded(node):
            yield path


def is_augmented(tree: Dict[str, Any], path: str) -> bool:
    """Return True if a pipeline is one of TestTimeAug."""
    around = (node for at, node in walk(tree, '') if path.startswith(f'{at}.'))
    return any(type_of(node) == 'TestTimeAug' for node in around)


def _is_guarded(loss: Any) -> bool:
    return 'Guarded' in type_of(loss) or type_of(loss) == 'VarifocalLoss'  # whose targets are dense
