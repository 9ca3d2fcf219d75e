"""Whether anything in a model heeds ignored instances, and how it comes to."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from mmguard.config.classes import MISSING, class_of, default_of, name_of
from mmguard.config.tree import Path, argument, dotted, key_of, scope_at, walk
from mmguard.labels.spaces.heads import MULTI_LABEL

#: Assigners that leave ignored regions out without an argument.
_ALWAYS = ('CenterRegionAssigner',)
#: They take the argument, and have no use for it: no sample of mmdet3d has ignored objects; mmrotate's fails at one.
_IN_VAIN = ('Max3DIoUAssigner', 'MaxConvexIoUAssigner')
#: They add a margin to the score of the label, before any loss.
_INDEX_BY_LABEL = ('ArcFaceClsHead',)
#: Share of an anchor or proposal inside an ignored region above which it is left out.
IGNORE_IOF_THR = 0.5


def assigners_of(tree: Dict[str, Any]) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """The assigners of all heads."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        if 'type' in node and 'assigner' in key_of(path):
            yield path, node


def _takes_threshold(tree: Dict[str, Any], path: Path, node: Dict[str, Any]) -> bool:
    cls = class_of(node['type'], 'TASK_UTILS', scope_at(tree, path))
    return name_of(node['type']) not in _IN_VAIN and default_of(cls, 'ignore_iof_thr') is not MISSING


def on_invalid(tree: Dict[str, Any]) -> str:
    """What ``GuardInstanceLabels`` does: an instance that is moved to the ignored ones must be left out there."""
    heeding = [name_of(n['type']) in _ALWAYS or _takes_threshold(tree, path, n) for path, n in assigners_of(tree)]
    return 'ignore' if heeding and all(heeding) else 'drop'


def heed_ignored(tree: Dict[str, Any]) -> List[str]:
    """Has every assigner that can leave out ignored regions, in place. Returns what was changed, in words."""
    changed = []
    for path, node in assigners_of(tree):
        if not _takes_threshold(tree, path, node):
            continue
        threshold = argument(node, 'ignore_iof_thr', 'TASK_UTILS', scope_at(tree, path))
        if threshold is None or threshold <= 0:
            node['ignore_iof_thr'] = IGNORE_IOF_THR
            changed.append(f'{dotted(path)}.ignore_iof_thr: {threshold} -> {IGNORE_IOF_THR}')
    return changed


def of_classifier(tree: Dict[str, Any], is_train: bool) -> Dict[str, Any]:
    """What ``GuardClsLabels`` has to know of the model: several labels per image, whether they become scores, and
    whether its head indexes by them.

    Args:
        tree (dict): The config.
        is_train (bool): Whether it is for a training; metrics of several labels take no scores without a label.
    """
    model = tree.get('model', {})
    head = model.get('head')
    multi_label = isinstance(head, dict) and _is_one_of(MULTI_LABEL, tree, head)
    if is_train and isinstance(head, dict) and _is_one_of(_INDEX_BY_LABEL, tree, head):
        return {'to_onehot': True, 'stand_in': 0}
    own = model.get('data_preprocessor')
    preprocessor = own if isinstance(own, dict) else tree.get('data_preprocessor') or {}
    makes_scores = preprocessor.get('to_onehot') or preprocessor.get('batch_augments', model.get('train_cfg'))
    arguments = {'multi_label': multi_label, 'to_onehot': bool(makes_scores) and (is_train or not multi_label)}
    return {name: True for name, said in arguments.items() if said}


def _is_one_of(wanted: Tuple[str, ...], tree: Dict[str, Any], head: Dict[str, Any]) -> bool:
    cls = class_of(head.get('type'), 'MODELS', scope_at(tree, ('model', 'head')))
    names = {name_of(head.get('type')), *(base.__name__ for base in getattr(cls, '__mro__', ()))}
    return bool(names & set(wanted))
