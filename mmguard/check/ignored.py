"""Every place of a config that says which label is ignored, or fills with it."""

from __future__ import annotations

from typing import Any, List, NamedTuple

from mmguard.check.config import ReadConfig
from mmguard.check.parts import Part, heads, losses, metrics, preprocessors, transforms

#: Who says it -> the argument it says it with.
LOSSES = {'OhemCrossEntropy': 'ignore_label', 'TverskyLoss': 'ignore_index', 'HuasdorffDisstanceLoss': 'ignore_index'}
METRICS = {'IoUMetric': 'ignore_index', 'CityscapesMetric': 'ignore_index'}
FILLS = {'RandomRotate': 'seg_pad_val', 'RandomMosaic': 'seg_pad_val', 'RandomCutOut': 'seg_fill_in'}
READS = {'RandomCrop': 'ignore_index', 'GuardSegLabels': 'ignore_index'}


class Ignored(NamedTuple):
    """One place.

    Attributes:
        path (str): Where it stands (or would stand: ``written`` says).
        value (int): The label.
        role (str): ``'head'``, ``'loss'``, ``'metric'``, ``'fill'`` (pixels get it) or ``'reads'`` (it is looked for).
        written (bool): Whether the config says it; else it is the default of the class.
        part (Part): Who says it.
    """

    path: str
    value: int
    role: str
    written: bool
    part: Part


def ignored_labels(config: ReadConfig) -> List[Ignored]:
    """The places of a segmentation config, heads first. Detection has no ignored label: an empty list."""
    if config.scope != 'mmseg':
        return []
    found: List[Ignored] = []
    for head in heads(config):
        if head.key in ('decode_head', 'auxiliary_head', 'kernel_generate_head'):
            _add(found, head, 'ignore_index', 'head')
    for loss in losses(config):
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
    return found


def _add(found: List[Ignored], part: Part, key: str, role: str) -> None:
    _note(found, part, key, part.get(key), role, part.says(key))


def _note(found: List[Ignored], part: Part, key: str, value: Any, role: str, written: bool) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        found.append(Ignored(part.at(key), value, role, written, part))
