"""Where mmseg's own CrossEntropyLoss averages by looking up class weights."""

from __future__ import annotations

from typing import List, Optional

from mmguard.config.parts import Part, losses
from mmguard.config.read import ReadConfig

#: Heads whose loss_decode classifies queries: "no object" has a weight of its own, ignored pixels never reach it.
QUERIES = ('SideAdapterCLIPHead',)


def weighted_cross_entropies(config: ReadConfig) -> List[Part]:
    """The softmax losses of mmseg that compute ``class_weight[label]`` for every pixel.

    That is CrossEntropyLoss with ``reduction='mean'`` (``avg_non_ignore`` or not: the look-up comes first) in a head
    that passes no ``avg_factor``, which is all of mmseg's decode heads; the guarded loss does not.
    """
    return [
        loss
        for loss in losses(config)
        if loss.name == 'CrossEntropyLoss'
        and loss.scope == 'mmseg'
        and loss.key == 'loss_decode'
        and loss.config.get('class_weight') is not None
        and not (loss.owner is not None and loss.owner.is_a(*QUERIES))
        and not loss.get('use_sigmoid', False)
        and not loss.get('use_mask', False)
        and loss.get('reduction', 'mean') == 'mean'
    ]


def ignored_by(loss: Part) -> Optional[int]:
    """The label that the head of a loss tells it to ignore."""
    value = None if loss.owner is None else loss.owner.get('ignore_index', 255)
    return value if isinstance(value, int) else None
