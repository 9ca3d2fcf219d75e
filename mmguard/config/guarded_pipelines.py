"""Insertion of guards into pipelines: after the Pack transform, and before GenerateEdge, which draws edges from labels.

``on_invalid`` of the instance guard depends on whether the assigners of the model can exclude ignored regions.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

from mmguard.config.classes import MISSING, build_full_name, get_default, get_type_name
from mmguard.config.parts import Part
from mmguard.config.tree import Path, find_scope, get_last_key, is_type_name, join_path, walk
from mmguard.labels.spaces import LabelSpaces
from mmguard.labels.tally import LABEL_GUARD

PIXEL_GUARD, INSTANCE_GUARD = 'GuardSegLabels', 'GuardInstanceLabels'
#: Transforms that derive further targets from the label map; a guard must come before them.
_DRAW_FROM_LABELS = ('GenerateEdge',)
_INSTANCE_PACK = 'PackDetInputs'
_PACKS = ('PackSegInputs', _INSTANCE_PACK)
_OTHER_PACKS = {
    'PackReIDInputs': 'its labels are identities, which mmguard does not guard',
    'PackTrackInputs': 'mmguard does not guard the frames of videos',
}
#: Transform whose steps are lists of alternatives: it applies each combination. The hook counts an image once.
_AUGMENTED = 'TestTimeAug'
_BRANCHES = 'MultiBranch'


class Report(NamedTuple):
    """Descriptions of the changed and of the unguarded pipelines, and the configs of the inserted guards."""

    changed: List[str]
    left: List[str]
    inserted: List[Dict[str, Any]]


def guard_pipelines(
    tree: Dict[str, Any], spaces: LabelSpaces, options: Mapping[str, Any] = MappingProxyType({})
) -> Report:
    """Insert guards in place into all pipelines of a config: those of data sets, wrappers, branches and hooks.

    ``options`` are the arguments ``label_map``, ``on_invalid`` and ``ignore_index`` of the guards.
    """
    report = Report([], [], [])
    for_instances = _build_instance_arguments(tree)
    if 'on_invalid' in options:
        for_instances['on_invalid'] = options['on_invalid']
    _convert_branches_to_lists(tree)
    for path, steps in list(_find_pipelines(tree, ())):
        pack_at = next(n for n, step in enumerate(steps) if _get_name(step) in (*_PACKS, *_OTHER_PACKS))
        pack = _get_first(steps[pack_at])
        if _get_name(pack) in _OTHER_PACKS:
            report.left.append(f'{join_path(path)}: no guard after {_get_name(pack)}: {_OTHER_PACKS[_get_name(pack)]}')
            continue
        evaluates = any(str(key).startswith(('val', 'test', 'tta')) for key in path)
        guards = _build_guards(steps, pack, spaces, for_instances, evaluates, find_scope(tree, path), options)
        if not guards:
            report.left.append(f'{join_path(path)}: no guard: the heads do not set their number of classes')
            continue
        present = {_get_name(step) for step in steps}
        wanted = [guard for guard in guards if get_type_name(guard['type']) not in present]
        if wanted:
            report.inserted.extend(_insert(tree, path, steps, pack_at, wanted))
            report.changed.append(f'{join_path(path)}: {", ".join(_describe_guard(guard) for guard in wanted)}')
    report.left.extend(_find_unknown_packs(tree.get('train_dataloader')))
    return report


def _find_unknown_packs(loader: Any) -> Iterator[str]:
    """Yield a note if the training pipelines contain neither a guard nor a Pack transform that mmguard knows."""
    steps = [step for _, node in walk(loader) for step in node.get('pipeline') or () if _get_name(step)]
    known = (PIXEL_GUARD, INSTANCE_GUARD)
    is_packed = any(True for _ in _find_pipelines(loader, ('train_dataloader',)))
    if steps and not is_packed and not any(_get_name(step) in known for step in steps):
        yield (
            f'train_dataloader: no guard: mmguard does not know any Pack transform among '
            f'{", ".join(map(_get_name, steps))}'
        )


def _get_first(step: Any) -> Any:
    """Return a step of a pipeline, or its first alternative if the step is a list (in TestTimeAug)."""
    return step[0] if isinstance(step, (list, tuple)) and step else step


def _get_name(step: Any) -> str:
    step = _get_first(step)
    return get_type_name(step['type']) if isinstance(step, dict) and 'type' in step else ''


def _find_pipelines(node: Any, path: Path) -> Iterator[Tuple[Path, List[Any]]]:
    """Yield (path, list of transforms) for each list that contains a Pack transform."""
    if isinstance(node, dict):
        for key, value in node.items():
            if _get_name(node) == _AUGMENTED and key == 'transforms':
                if isinstance(value, list) and any(_get_name(step) in (*_PACKS, *_OTHER_PACKS) for step in value):
                    yield (*path, key), value
            elif path or key != 'model':
                yield from _find_pipelines(value, (*path, key))
    elif isinstance(node, (list, tuple)):
        if isinstance(node, list) and any(_get_name(step) in (*_PACKS, *_OTHER_PACKS) for step in node):
            yield path, node
        for number, value in enumerate(node):
            yield from _find_pipelines(value, (*path, number))


def _convert_branches_to_lists(tree: Dict[str, Any]) -> None:
    """Convert each branch that is only a Pack transform (``MultiBranch(sup=dict(type='PackDetInputs'))``) to a list."""
    for _, node in walk(tree):
        if _get_name(node) != _BRANCHES:
            continue
        for key, value in node.items():
            if isinstance(value, dict) and _get_name(value) in _PACKS:
                node[key] = [value]


def _build_instance_arguments(tree: Dict[str, Any]) -> Dict[str, Any]:
    """Return the arguments of ``GuardInstanceLabels`` that suit the assigners of the model."""
    what = on_invalid(tree)
    return {'on_invalid': what} if what != 'ignore' else {'keep_ignored': False} if has_ignoring_disabled(tree) else {}


def _build_guards(
    steps: List[Any],
    pack: Dict[str, Any],
    spaces: LabelSpaces,
    for_instances: Dict[str, Any],
    evaluates: bool,
    scope: str,
    options: Mapping[str, Any],
) -> List[Dict[str, Any]]:
    guards = []
    label_map = {'label_map': options['label_map']} if options.get('label_map') else {}
    has_maps = spaces.pixels is not None and _packs_label_maps(steps, pack, scope)
    if _get_name(pack) == _INSTANCE_PACK and spaces.instances is not None:
        guard = {'type': _build_type(pack, INSTANCE_GUARD), 'num_classes': spaces.instances.num_classes}
        # Metrics read ignored annotations, so they are kept.
        guard.update({name: said for name, said in for_instances.items() if not evaluates or name != 'keep_ignored'})
        guard.update({} if has_maps else label_map)
        guards.append(guard)
    if spaces.pixels is not None and has_maps:
        guard = {'type': _build_type(pack, PIXEL_GUARD), 'num_classes': spaces.pixels.num_classes}
        ignore_index = options.get('ignore_index', spaces.pixels.ignore_index)
        if ignore_index != 255:
            guard['ignore_index'] = ignore_index
        if 'on_invalid' in options and not (guards and options['on_invalid'] == 'drop'):  # pixels are not dropped
            guard['on_invalid'] = options['on_invalid']
        guard.update(label_map)
        guards.append(guard)
    return guards


def _packs_label_maps(steps: List[Any], pack: Dict[str, Any], scope: str) -> bool:
    """Return True if a pipeline packs label maps, or if it loads no labels itself: a wrapped data set may load maps."""
    if _get_name(pack) != _INSTANCE_PACK:
        return _get_name(pack) == 'PackSegInputs'
    loaders = [_get_first(step) for step in steps if 'Annotations' in _get_name(step)]
    return not loaders or any(Part('', step, scope, 'TRANSFORMS').get('with_seg') for step in loaders)


def _build_type(pack: Dict[str, Any], name: str) -> Any:
    stock = pack['type']
    if not is_type_name(stock):
        return build_lazy_type('mmguard', name)
    return f'mmguard.{name}' if build_full_name(stock).count('.') > 1 else name


def build_lazy_type(module: str, name: str) -> Any:
    """Return an mmengine LazyObject for a class: new-style configs contain such objects in place of classes."""
    from mmengine.config.lazy import LazyObject

    return LazyObject(module, name)


def _insert(
    tree: Dict[str, Any], path: Path, steps: List[Any], pack_at: int, guards: List[Dict[str, Any]]
) -> List[Dict[str, Any]]:
    """Insert guards after the Pack transform, and pixel guards before GenerateEdge; return the inserted guards."""
    drawing = next((n for n, step in enumerate(steps[:pack_at]) if _get_name(step) in _DRAW_FROM_LABELS), None)
    early = [dict(guard) for guard in guards if drawing is not None and get_type_name(guard['type']) == PIXEL_GUARD]
    late = [dict(guard) for guard in guards]
    if drawing is not None and early:
        if drawing + 1 == pack_at:  # nothing changes a label in between
            late = [guard for guard in late if guard not in early]
        for guard in late:
            if get_type_name(guard['type']) == PIXEL_GUARD:
                guard.pop('label_map', None)  # the early guard applies it
        _pass_on_report(tree, path, _get_first(steps[pack_at]))
    has_alternatives = isinstance(steps[pack_at], (list, tuple))
    steps[pack_at + 1 : pack_at + 1] = [[guard] for guard in late] if has_alternatives else late
    if drawing is not None:
        steps[drawing:drawing] = [[guard] for guard in early] if has_alternatives else early
    return [*early, *late]


def _pass_on_report(tree: Dict[str, Any], path: Path, pack: Dict[str, Any]) -> None:
    """Make the Pack transform keep the report of an earlier guard: add the key of the report to its ``meta_keys``."""
    keys = Part('', pack, find_scope(tree, path), 'TRANSFORMS').get('meta_keys')
    if keys is not None and LABEL_GUARD not in keys:
        pack['meta_keys'] = type(keys)((*keys, LABEL_GUARD))


def _describe_guard(guard: Dict[str, Any]) -> str:
    arguments = ', '.join(f'{key}={value!r}' for key, value in guard.items() if key != 'type')
    return f'+ {get_type_name(guard["type"])}({arguments})'


#: Assigners that always exclude ignored regions; they have no ``ignore_iof_thr``.
ALWAYS = ('CenterRegionAssigner',)
#: Anchors and proposals with a larger fraction of their area inside an ignored region are excluded.
IGNORE_IOF_THR = 0.5


def _find_assigners(tree: Dict[str, Any]) -> List[Part]:
    """Return the assigners of the model; their ``config`` is the dict in the tree, not a copy."""
    return [
        Part(join_path(path), node, find_scope(tree, path), 'TASK_UTILS')
        for path, node in walk(tree.get('model', {}), ('model',))
        if 'type' in node and 'assigner' in get_last_key(path)
    ]


def _takes_threshold(assigner: Part) -> bool:
    return get_default(assigner.cls, 'ignore_iof_thr') is not MISSING


def has_threshold(assigner: Part) -> bool:
    """Return True if ``ignore_iof_thr`` of an assigner is positive, so that the assigner excludes ignored regions."""
    threshold = assigner.get('ignore_iof_thr')
    return isinstance(threshold, (int, float)) and threshold > 0


def on_invalid(tree: Dict[str, Any]) -> str:
    """Return ``'ignore'`` for ``GuardInstanceLabels`` if all assigners support ignored regions, else ``'drop'``."""
    uses = [one.name in ALWAYS or _takes_threshold(one) for one in _find_assigners(tree)]
    return 'ignore' if uses and all(uses) else 'drop'


def has_ignoring_disabled(tree: Dict[str, Any]) -> bool:
    """Return True if all assigners support ignored regions but none excludes them: crowds are trained as background."""
    found = _find_assigners(tree)
    return bool(found) and all(_takes_threshold(one) and not has_threshold(one) for one in found)


def leave_out_ignored(tree: Dict[str, Any]) -> List[str]:
    """Enable ``ignore_iof_thr`` if all assigners disable it and a guard removes crowds; return a line per change."""
    without_crowds = any(node.get('keep_ignored') is False for _, node in walk(tree))
    changed = []
    for one in _find_assigners(tree) if without_crowds and has_ignoring_disabled(tree) else ():
        changed.append(f'{one.place("ignore_iof_thr")}: {one.get("ignore_iof_thr")} -> {IGNORE_IOF_THR}')
        one.config['ignore_iof_thr'] = IGNORE_IOF_THR
    return changed


def find_trained_as_background(tree: Dict[str, Any]) -> Iterator[str]:
    """Yield a line per assigner that trains ignored regions as background: its ``ignore_iof_thr`` is not positive."""
    for one in _find_assigners(tree) if on_invalid(tree) == 'ignore' else ():
        if one.name not in ALWAYS and not has_threshold(one):
            yield (
                f'{one.place("ignore_iof_thr")}={one.get("ignore_iof_thr")}: regions of instances with invalid labels '
                f'are trained as background, like crowd regions'
            )
