"""Ignored labels and ignored instances: where a config sets them, and which parts respect them."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.config.changes import find_scope, get_last_key, join_path, walk
from mmguard.config.classes import MISSING, get_default
from mmguard.config.parts import (
    HOOK,
    Part,
    find_datasets,
    find_guarding_hook,
    find_heads,
    find_losses,
    find_metrics,
    find_preprocessors,
    find_transforms,
    unwrap_stock_loss,
)
from mmguard.config.read import ReadConfig

#: Type -> its argument for the ignored label.
LOSS_ARGUMENTS = {
    'OhemCrossEntropy': 'ignore_label',
    'TverskyLoss': 'ignore_index',
    'HuasdorffDisstanceLoss': 'ignore_index',
}
METRIC_ARGUMENTS = {'IoUMetric': 'ignore_index', 'CityscapesMetric': 'ignore_index'}
FILL_ARGUMENTS = {'RandomRotate': 'seg_pad_val', 'RandomMosaic': 'seg_pad_val', 'RandomCutOut': 'seg_fill_in'}
READING_ARGUMENTS = {'RandomCrop': 'ignore_index', 'GuardSegLabels': 'ignore_index'}


class IgnoredLabel(NamedTuple):
    """A place that sets the ignored label."""

    path: str  #: Path of the argument, whether or not the config sets it.
    value: int  #: The label.
    role: str  #: ``'head'``, ``'loss'``, ``'metric'``, ``'fill'`` (pixels are set to it) or ``'reads'``.
    written: bool  #: True if the config sets it; otherwise it is the default of the class.
    part: Part  #: The part that has it.


def find_ignored_labels(config: ReadConfig) -> List[IgnoredLabel]:
    """Return the places in a config of mmseg that set an ignored label, heads first."""
    if config.framework != 'mmseg':
        return []
    found: List[IgnoredLabel] = []
    for head in find_heads(config):
        if head.key in ('decode_head', 'auxiliary_head', 'kernel_generate_head'):
            _add(found, head, 'ignore_index', 'head')
    for loss in map(unwrap_stock_loss, find_losses(config)):
        if loss.name in LOSS_ARGUMENTS:
            _add(found, loss, LOSS_ARGUMENTS[loss.name], 'loss')
    for preprocessor in find_preprocessors(config):
        _add(found, preprocessor, 'seg_pad_val', 'fill')
    hook = find_guarding_hook(config)
    if hook is not None and hook.says('ignore_index'):
        _add(found, hook, 'ignore_index', 'reads')
    for transform in find_transforms(config):
        if not transform.written:
            continue  # it takes the label of the hook or of the head
        if transform.name in FILL_ARGUMENTS:
            _add(found, transform, FILL_ARGUMENTS[transform.name], 'fill')
        elif transform.name in READING_ARGUMENTS:
            _add(found, transform, READING_ARGUMENTS[transform.name], 'reads')
        elif transform.name == 'Pad' and isinstance(transform.config.get('pad_val'), dict):
            _note(found, transform, 'pad_val.seg', transform.config['pad_val'].get('seg', 255), 'fill', True)
    for metric in find_metrics(config):
        if metric.name in METRIC_ARGUMENTS:
            _add(found, metric, METRIC_ARGUMENTS[metric.name], 'metric')
    for dataset in find_datasets(config):
        if dataset.is_old:  # mmseg 0.x evaluates with the label that the data set ignores
            _add(found, dataset, 'ignore_index', 'metric')
    return found


def find_leading(config: ReadConfig, places: List[IgnoredLabel]) -> Optional[IgnoredLabel]:
    """Return the place that all others must match; ``None`` without a decode head that ignores a label.

    It is that of the decode head, or that of a guard if all fill values and metrics agree with it: the guard turns all
    unlabeled pixels into its label before a head sees them.
    """
    first = next((head for head in find_heads(config) if head.key == 'decode_head'), None)
    leading = next((place for place in places if place.part == first), None)
    guard = next((place for place in places if place.part.name in ('GuardSegLabels', HOOK)), None)
    others = [place for place in places if place.role != 'head']
    if leading is None or guard is None or {place.role for place in others} <= {'reads'}:
        return leading
    return guard if {place.value for place in others} == {guard.value} else leading


def find_disagreeing_labels(config: ReadConfig) -> Iterator[Tuple[IgnoredLabel, IgnoredLabel]]:
    """Yield each place whose ignored label differs from the leading one, and the leading place."""
    places = find_ignored_labels(config)
    first = find_leading(config, places)
    if first is not None:  # None: ignore_index=None, for masked binary cross entropy; a detector
        yield from ((place, first) for place in places if place.value != first.value)


def _add(places: List[IgnoredLabel], part: Part, key: str, role: str) -> None:
    _note(places, part, key, part.get(key), role, part.says(key))


def _note(places: List[IgnoredLabel], part: Part, key: str, value: Any, role: str, is_written: bool) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        places.append(IgnoredLabel(part.place(key), value, role, is_written, part))


#: Assigners that always leave ignored regions out; they have no ``ignore_iof_thr``.
ALWAYS = ('CenterRegionAssigner',)
#: An anchor or proposal with a larger share inside an ignored region is left out.
IGNORE_IOF_THR = 0.5


def _find_assigners(tree: Dict[str, Any]) -> List[Part]:
    """Return the assigners of all heads; their dicts are those of the tree."""
    return [
        Part(join_path(path), node, find_scope(tree, path), 'TASK_UTILS')
        for path, node in walk(tree.get('model', {}), ('model',))
        if 'type' in node and 'assigner' in get_last_key(path)
    ]


def _takes_threshold(assigner: Part) -> bool:
    return get_default(assigner.cls, 'ignore_iof_thr') is not MISSING


def has_threshold(assigner: Part) -> bool:
    """Return True if ignored regions are enabled in an assigner."""
    threshold = assigner.get('ignore_iof_thr')
    return isinstance(threshold, (int, float)) and threshold > 0


def on_invalid(tree: Dict[str, Any]) -> str:
    """Return ``on_invalid`` of ``GuardInstanceLabels``: ``'ignore'`` only if the model supports ignored instances."""
    uses = [one.name in ALWAYS or _takes_threshold(one) for one in _find_assigners(tree)]
    return 'ignore' if uses and all(uses) else 'drop'


def has_ignoring_disabled(tree: Dict[str, Any]) -> bool:
    """True if all assigners support ignored regions but none has them enabled, so crowds are trained as background."""
    found = _find_assigners(tree)
    return bool(found) and all(_takes_threshold(one) and not has_threshold(one) for one in found)


def leave_out_ignored(tree: Dict[str, Any]) -> List[str]:
    """Enable ignored regions in every assigner, in place, if all have them disabled and crowds are removed earlier."""
    without_crowds = any(node.get('keep_ignored') is False for _, node in walk(tree))
    changed = []
    for one in _find_assigners(tree) if without_crowds and has_ignoring_disabled(tree) else ():
        changed.append(f'{one.place("ignore_iof_thr")}: {one.get("ignore_iof_thr")} -> {IGNORE_IOF_THR}')
        one.config['ignore_iof_thr'] = IGNORE_IOF_THR
    return changed


def find_trained_as_background(tree: Dict[str, Any]) -> Iterator[str]:
    """Yield a line per assigner that trains ignored regions as background, which it must go on doing for crowds."""
    for one in _find_assigners(tree) if on_invalid(tree) == 'ignore' else ():
        if one.name not in ALWAYS and not has_threshold(one):
            yield (
                f'{one.place("ignore_iof_thr")}={one.get("ignore_iof_thr")}: regions of instances with invalid labels '
                f'are trained as background there, like those of crowds'
            )
