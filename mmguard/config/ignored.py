"""Places of a config that say which label is ignored, or fill with it."""

from __future__ import annotations

from typing import Any, List, Mapping, NamedTuple, Optional

from mmguard.config.parts import Part, heads, losses, metrics, preprocessors, stock_loss, transforms
from mmguard.config.read import ReadConfig

#: Type -> its argument for the ignored label.
LOSSES = {'OhemCrossEntropy': 'ignore_label', 'TverskyLoss': 'ignore_index', 'HuasdorffDisstanceLoss': 'ignore_index'}
METRICS = {'IoUMetric': 'ignore_index', 'CityscapesMetric': 'ignore_index'}
FILLS = {'RandomRotate': 'seg_pad_val', 'RandomMosaic': 'seg_pad_val', 'RandomCutOut': 'seg_fill_in'}
READS = {'RandomCrop': 'ignore_index', 'GuardSegLabels': 'ignore_index'}
#: The same in mmdet, which may have a semantic head; transforms that fill where an image was moved.
DET_FILLS = dict.fromkeys(
    ('Rotate', 'ShearX', 'ShearY', 'TranslateX', 'TranslateY', 'GeomTransform', 'Expand'), 'seg_ignore_label'
)
DET_READS = {'GuardSegLabels': 'ignore_index'}
DET_HEAD = 'semantic_head'
#: Value that mmdet's LoadPanopticAnnotations writes outside of all segments.
DET_VOID = 255


class Ignored(NamedTuple):
    """One place that names the ignored label.

    Attributes:
        path (str): Its path; ``written`` says if the config has it.
        value (int): The label.
        role (str): ``'head'``, ``'loss'``, ``'metric'``, ``'fill'`` (pixels are set to it) or ``'reads'``.
        written (bool): True if the config says it; else it is the default of the class.
        part (Part): The part that has it.
    """

    path: str
    value: int
    role: str
    written: bool
    part: Part


def find_ignored_labels(config: ReadConfig) -> List[Ignored]:
    """Return the places of a config, heads first.

    Of a detector those about stuff maps: instances have no ignored label.
    """
    if config.framework == 'mmdet':
        return _find_in_detector(config)
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
    _add_transforms(found, config, FILLS, READS)
    for metric in metrics(config):
        if metric.name in METRICS:
            _add(found, metric, METRICS[metric.name], 'metric')
    return found


def leading(config: ReadConfig, places: List[Ignored]) -> Optional[Ignored]:
    """Return the place that the others must agree with: that of the decode head, or of a detector's semantic head."""
    first = next((head for head in heads(config) if head.key in ('decode_head', DET_HEAD)), None)
    return next((place for place in places if place.part == first), None)


def _find_in_detector(config: ReadConfig) -> List[Ignored]:
    found: List[Ignored] = []
    for head in heads(config):
        if head.key == DET_HEAD:
            _add_semantic_head(found, head)
    if not found:
        return []
    for preprocessor in preprocessors(config):
        augments = preprocessor.config.get('batch_augments')
        pads = [preprocessor.config, *(augments if isinstance(augments, (list, tuple)) else ())]
        for number, pad in enumerate(pads):
            if isinstance(pad, dict) and pad.get('pad_seg'):
                key = f'batch_augments[{number - 1}].seg_pad_value' if number else 'seg_pad_value'
                written = 'seg_pad_value' in pad
                _note(found, preprocessor, key, pad.get('seg_pad_value', DET_VOID), 'fill', written)
    _add_transforms(found, config, DET_FILLS, DET_READS)
    return found


def _add_transforms(
    found: List[Ignored], config: ReadConfig, fills: Mapping[str, str], reads: Mapping[str, str]
) -> None:
    for transform in transforms(config):
        if transform.name in fills:
            _add(found, transform, fills[transform.name], 'fill')
        elif transform.name in reads:
            _add(found, transform, reads[transform.name], 'reads')
        elif transform.name == 'LoadPanopticAnnotations' and config.framework == 'mmdet':
            found.append(Ignored(transform.path, DET_VOID, 'fill', False, transform))
        elif transform.name == 'Pad' and isinstance(transform.config.get('pad_val'), dict):
            _note(found, transform, 'pad_val.seg', transform.config['pad_val'].get('seg', 255), 'fill', True)


def _add_semantic_head(found: List[Ignored], head: Part) -> None:
    # FusedSemanticHead has this argument, too; the others pass their loss on as it is.
    if isinstance(head.config.get('ignore_label'), int) and head.config['ignore_label']:
        _add(found, head, 'ignore_label', 'head')
        return
    loss = head.get('loss_seg')
    if isinstance(loss, dict) and not loss.get('use_sigmoid') and 'CrossEntropyLoss' in str(loss.get('type')):
        value = loss.get('ignore_index')
        written = head.says('loss_seg') and value is not None
        # mmdet's CrossEntropyLoss without one ignores what torch's does.
        _note(found, head, 'loss_seg.ignore_index', -100 if value is None else value, 'head', written)


def _add(found: List[Ignored], part: Part, key: str, role: str) -> None:
    _note(found, part, key, part.get(key), role, part.says(key))


def _note(found: List[Ignored], part: Part, key: str, value: Any, role: str, written: bool) -> None:
    if isinstance(value, int) and not isinstance(value, bool):
        found.append(Ignored(part.at(key), value, role, written, part))
