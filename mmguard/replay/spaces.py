"""Which labels are valid, as the heads of a model have it."""

from __future__ import annotations

import re
from typing import Any, Dict, Optional, Tuple

from torch import nn

from mmguard.hooks.discovery import label_space
from mmguard.instances import InstanceRule
from mmguard.labels import LabelRule, LabelSpace

#: Heads that train on labels, the most telling first; those of a cascade have a number behind them.
_PIXEL_HEADS = ('decode_head', 'semantic_head', 'panoptic_head')
_INSTANCE_HEADS = ('bbox_head', 'panoptic_head', 'query_head', 'mask_head')
_NOT_IGNORED = -100


def spaces_of(model: nn.Module) -> Dict[str, LabelSpace]:
    """Kind (``'pixels'``, ``'instances'``) -> rule; a kind that no head trains on is left out."""
    spaces: Dict[str, LabelSpace] = {}
    pixels, instances = _first(model, _PIXEL_HEADS), _first(model, _INSTANCE_HEADS)
    if pixels is not None:
        num_classes, ignore_index = pixels
        spaces['pixels'] = LabelRule(num_classes, 255 if ignore_index == _NOT_IGNORED else ignore_index)
    if instances is not None:
        spaces['instances'] = InstanceRule(instances[0])
    return spaces


def spaces_in(config: Any) -> Dict[str, LabelSpace]:
    """The same as the config writes it, where no model is built."""
    from mmguard.report.log_config import logged_space

    plain = config.to_dict()
    plain.pop('train_dataloader', None)  # what its guards mend is looked at in the samples
    spaces: Dict[str, LabelSpace] = {}
    pixels, instances = (logged_space(plain, 'train', kind) for kind in ('pixels', 'instances'))
    if pixels is not None:
        spaces['pixels'] = LabelRule(pixels.num_classes, 255 if pixels.ignore_index is None else pixels.ignore_index)
    if instances is not None:
        spaces['instances'] = InstanceRule(instances.num_classes)
    return spaces


def _first(model: nn.Module, heads: Tuple[str, ...]) -> Optional[Tuple[int, int]]:
    """``num_classes`` (the smallest of a cascade) and ``ignore_index`` of the first of these heads."""
    for head in heads:
        pattern = re.compile(rf'(.*\.)?{head}(\.\d+)?')
        names = [name for name, _ in model.named_modules() if pattern.fullmatch(name) and 'rpn' not in name]
        found = [label_space(model, _labelled(model, name)) for name in names if _has_classes(model, name)]
        sizes = [(num_classes, ignored) for num_classes, ignored in found if num_classes is not None]
        if sizes:
            return min(sizes)
    return None


def _has_classes(model: nn.Module, name: str) -> bool:
    return isinstance(getattr(model.get_submodule(name), 'num_classes', None), int)


def _labelled(model: nn.Module, name: str) -> str:
    """The name of the head's loss where it has one: both have a say in what is ignored."""
    for loss in ('loss_decode', 'loss_seg'):
        owned = getattr(model.get_submodule(name), loss, None)
        if isinstance(owned, nn.ModuleList):
            return f'{name}.{loss}.0'
        if isinstance(owned, nn.Module):
            return f'{name}.{loss}'
    return name
