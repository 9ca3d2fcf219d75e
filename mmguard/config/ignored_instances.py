"""Ignored instances: which parts of a model leave them out, and how to make the others do so."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from mmguard.config.classes import MISSING, class_of, default_of, name_of
from mmguard.config.tree import Path, argument, join_path, key_of, scope_at, walk
from mmguard.labels.spaces.heads import MULTI_LABEL

#: Assigners that leave ignored regions out without an argument.
_ALWAYS = ('CenterRegionAssigner',)
#: They accept the argument but do not use it: mmdet3d has no ignored objects; mmrotate's assigner fails at one.
_IN_VAIN = ('Max3DIoUAssigner', 'MaxConvexIoUAssigner')
#: An anchor or proposal with a larger share inside an ignored region is left out.
IGNORE_IOF_THR = 0.5


def assigners_of(tree: Dict[str, Any]) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """Yield the assigners of all heads."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        if 'type' in node and 'assigner' in key_of(path):
            yield path, node


def _takes_threshold(tree: Dict[str, Any], path: Path, node: Dict[str, Any]) -> bool:
    cls = class_of(node['type'], 'TASK_UTILS', scope_at(tree, path))
    return name_of(node['type']) not in _IN_VAIN and default_of(cls, 'ignore_iof_thr') is not MISSING


def on_invalid(tree: Dict[str, Any]) -> str:
    """Return ``on_invalid`` of ``GuardInstanceLabels``: ``'ignore'`` only if the model leaves out ignored instances."""
    uses = [name_of(n['type']) in _ALWAYS or _takes_threshold(tree, path, n) for path, n in assigners_of(tree)]
    return 'ignore' if uses and all(uses) else 'drop'


def uses_no_ignored(tree: Dict[str, Any]) -> bool:
    """True if every assigner can leave ignored regions out, and none does: crowds are trained as background."""
    found = list(assigners_of(tree))
    return bool(found) and all(_takes_threshold(tree, *one) and not _is_set(_threshold(tree, *one)) for one in found)


def leave_out_ignored(tree: Dict[str, Any]) -> List[str]:
    """Make every assigner leave out ignored regions, in place, if none does and crowds are removed before."""
    without_crowds = any(node.get('keep_ignored') is False for _, node in walk(tree))
    changed = []
    for path, node in assigners_of(tree) if without_crowds and uses_no_ignored(tree) else ():
        changed.append(f'{join_path(path)}.ignore_iof_thr: {_threshold(tree, path, node)} -> {IGNORE_IOF_THR}')
        node['ignore_iof_thr'] = IGNORE_IOF_THR
    return changed


def find_trained_as_background(tree: Dict[str, Any]) -> Iterator[str]:
    """Name the assigners that do not leave out ignored regions: a change would change how crowds are trained."""
    for path, node in assigners_of(tree) if on_invalid(tree) == 'ignore' else ():
        threshold = _threshold(tree, path, node) if _takes_threshold(tree, path, node) else None
        if name_of(node['type']) not in _ALWAYS and not _is_set(threshold):
            yield (
                f'{join_path(path)}.ignore_iof_thr={threshold}: regions of instances with invalid labels are trained '
                f'as background there, like those of crowds'
            )


def _threshold(tree: Dict[str, Any], path: Path, node: Dict[str, Any]) -> Any:
    return argument(node, 'ignore_iof_thr', 'TASK_UTILS', scope_at(tree, path))


def _is_set(threshold: Any) -> bool:
    return threshold is not None and threshold > 0


def classifier_arguments(tree: Dict[str, Any], is_train: bool) -> Dict[str, Any]:
    """Return the arguments of ``GuardClsLabels`` that depend on the model: several labels per image, labels as scores.

    Outside of a training several labels stay labels: their metrics take no scores without one.
    """
    model = tree.get('model', {})
    head = model.get('head')
    multi_label = isinstance(head, dict) and _is_one_of(MULTI_LABEL, tree, head)
    own = model.get('data_preprocessor')
    preprocessor = own if isinstance(own, dict) else tree.get('data_preprocessor') or {}
    makes_scores = preprocessor.get('to_onehot') or preprocessor.get('batch_augments', model.get('train_cfg'))
    arguments = {'multi_label': multi_label, 'to_onehot': bool(makes_scores) and (is_train or not multi_label)}
    return {name: True for name, said in arguments.items() if said}


def _is_one_of(wanted: Tuple[str, ...], tree: Dict[str, Any], head: Dict[str, Any]) -> bool:
    cls = class_of(head.get('type'), 'MODELS', scope_at(tree, ('model', 'head')))
    names = {name_of(head.get('type')), *(base.__name__ for base in getattr(cls, '__mro__', ()))}
    return bool(names & set(wanted))
