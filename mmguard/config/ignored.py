"""Ignored labels and ignored instances: where a config sets them, and which parts respect them."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.config.changes import Path, argument, join_path, key_of, scope_at, walk
from mmguard.config.classes import MISSING, class_of, default_of, name_of
from mmguard.config.parts import Part, datasets, heads, losses, metrics, preprocessors, stock_loss, transforms
from mmguard.config.read import ReadConfig
from mmguard.labels.heads import MULTI_LABEL

#: Type -> its argument for the ignored label.
LOSSES = {'OhemCrossEntropy': 'ignore_label', 'TverskyLoss': 'ignore_index', 'HuasdorffDisstanceLoss': 'ignore_index'}
METRICS = {'IoUMetric': 'ignore_index', 'CityscapesMetric': 'ignore_index'}
FILLS = {'RandomRotate': 'seg_pad_val', 'RandomMosaic': 'seg_pad_val', 'RandomCutOut': 'seg_fill_in'}
READS = {'RandomCrop': 'ignore_index', 'GuardSegLabels': 'ignore_index'}


class Ignored(NamedTuple):
    """A place that sets the ignored label.

    Attributes:
        path (str): Path of the argument, whether or not the config sets it.
        value (int): The label.
        role (str): ``'head'``, ``'loss'``, ``'metric'``, ``'fill'`` (pixels are set to it) or ``'reads'``.
        written (bool): True if the config sets it; otherwise it is the default of the class.
        part (Part): The part that has it.
    """

    path: str
    value: int
    role: str
    written: bool
    part: Part


def find_ignored_labels(config: ReadConfig) -> List[Ignored]:
    """Return the places in a config of mmseg that set an ignored label, heads first."""
    if config.framework != 'mmseg':
        return []
    found: List[Ignored] = []
    for head in heads(config):
        if head.key in ('decode_head', 'auxiliary_head', 'kernel_generate_head'):
            _add(found, head, 'ignore_index', 'head')
    for loss in map(stock_loss, losses(config)):
        if loss.name in LOSSES:
            _add(found, loss, LOSSES[loss.name], 'loss')
    for preprocessor in preprocessors(config):
        _add(found, preprocessor, 'seg_pad_val', 'fill')
    for transform in transforms(config):
        if transform.name in FILLS:
            _add(found, transform, FILLS[transform.name], 'fill')
        elif transform.name in READS:
            _add(found, transform, READS[transform.name], 'reads')
        elif transform.name == 'Pad' and isinstance(transform.config.get('pad_val'), dict):
            _note(found, transform, 'pad_val.seg', transform.config['pad_val'].get('seg', 255), 'fill', True)
    for metric in metrics(config):
        if metric.name in METRICS:
            _add(found, metric, METRICS[metric.name], 'metric')
    for dataset in datasets(config):
        if dataset.is_old:  # mmseg 0.x evaluates with the label that the data set ignores
            _add(found, dataset, 'ignore_index', 'metric')
    return found


def find_leading(config: ReadConfig, places: List[Ignored]) -> Optional[Ignored]:
    """Return the place that all others must match, that of the decode head."""
    first = next((head for head in heads(config) if head.key == 'decode_head'), None)
    return next((place for place in places if place.part == first), None)


def _add(found: List[Ignored], part: Part, key: str, role: str) -> None:
    _note(found, part, key, part.get(key), role, part.says(key))


def _note(found: List[Ignored], part: Part, key: str, value: Any, role: str, written: bool) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        found.append(Ignored(part.place(key), value, role, written, part))


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
    """Return ``on_invalid`` of ``GuardInstanceLabels``: ``'ignore'`` only if the model supports ignored instances."""
    uses = [name_of(n['type']) in _ALWAYS or _takes_threshold(tree, path, n) for path, n in assigners_of(tree)]
    return 'ignore' if uses and all(uses) else 'drop'


def uses_no_ignored(tree: Dict[str, Any]) -> bool:
    """True if all assigners support ignored regions but none has them enabled, so crowds are trained as background."""
    found = list(assigners_of(tree))
    return bool(found) and all(
        _takes_threshold(tree, *one) and not _is_set(_get_threshold(tree, *one)) for one in found
    )


def leave_out_ignored(tree: Dict[str, Any]) -> List[str]:
    """Enable ignored regions in every assigner, in place, if all have them disabled and crowds are removed earlier."""
    without_crowds = any(node.get('keep_ignored') is False for _, node in walk(tree))
    changed = []
    for path, node in assigners_of(tree) if without_crowds and uses_no_ignored(tree) else ():
        changed.append(f'{join_path(path)}.ignore_iof_thr: {_get_threshold(tree, path, node)} -> {IGNORE_IOF_THR}')
        node['ignore_iof_thr'] = IGNORE_IOF_THR
    return changed


def find_trained_as_background(tree: Dict[str, Any]) -> Iterator[str]:
    """List the assigners that do not respect ignored regions: changing that would change how crowds are trained."""
    for path, node in assigners_of(tree) if on_invalid(tree) == 'ignore' else ():
        threshold = _get_threshold(tree, path, node) if _takes_threshold(tree, path, node) else None
        if name_of(node['type']) not in _ALWAYS and not _is_set(threshold):
            yield (
                f'{join_path(path)}.ignore_iof_thr={threshold}: regions of instances with invalid labels are trained '
                f'as background there, like those of crowds'
            )


def _get_threshold(tree: Dict[str, Any], path: Path, node: Dict[str, Any]) -> Any:
    return argument(node, 'ignore_iof_thr', 'TASK_UTILS', scope_at(tree, path))


def _is_set(threshold: Any) -> bool:
    return threshold is not None and threshold > 0


def classifier_arguments(tree: Dict[str, Any], is_train: bool) -> Dict[str, Any]:
    """Return the arguments of ``GuardClsLabels`` that depend on the model: multi-label, one-hot.

    Outside of training, several labels remain labels, because their metrics do not accept scores without any label.
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
