"""Whether anything in a model heeds ignored instances, and how it comes to."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Tuple

from mmguard.config.classes import MISSING, class_of, default_of, name_of
from mmguard.tools.apply.tree import Path, argument, dotted, key_of, scope_at, walk

#: Assigners that leave ignored regions out without an argument.
_ALWAYS = ('CenterRegionAssigner',)
#: Share of an anchor or proposal inside an ignored region above which it is left out.
IGNORE_IOF_THR = 0.5


def assigners_of(tree: Dict[str, Any]) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """The assigners of all heads."""
    for path, node in walk(tree.get('model', {}), ('model',)):
        if 'type' in node and 'assigner' in key_of(path):
            yield path, node


def _takes_threshold(tree: Dict[str, Any], path: Path, node: Dict[str, Any]) -> bool:
    cls = class_of(node['type'], 'TASK_UTILS', scope_at(tree, path))
    return default_of(cls, 'ignore_iof_thr') is not MISSING


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
