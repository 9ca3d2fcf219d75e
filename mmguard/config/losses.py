"""Queries about losses of a config: number of class weights needed, softmax over channels, and ignored label."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple

from mmguard.config.agreement import THINGS, count_classes
from mmguard.config.parts import Part, find_losses, unwrap_stock_loss
from mmguard.config.read import ReadConfig
from mmguard.language import Message
from mmguard.text import quantity

#: Heads whose loss_cls has an extra weight for "no object".
QUERY_HEADS = ('MaskFormerHead', 'Mask2FormerHead', 'SideAdapterCLIPHead')
#: Default weight of "no object" in QUERY_HEADS.
NO_OBJECT = 0.1


def count_expected_weights(loss: Part) -> Tuple[Optional[int], str]:
    """Return how many class weights a loss needs (``None`` if unknown), and a note on an extra weight, or ''."""
    head = loss.owner
    classes = count_classes(head)
    if head is None or classes is None:
        return None, ''
    # A head that is not installed but counts things and stuff is a query head, too.
    if head.is_a(*QUERY_HEADS) or (head.cls is None and isinstance(head.config.get(THINGS), int)):
        if loss.key == 'loss_cls' or str(loss.config.get('loss_name', '')).startswith('loss_cls'):
            return classes + 1, Message(' ({classes} and "no object")', classes=quantity(classes, 'class'))
        return None, ''
    if head.scope == 'mmseg' and loss.key == 'loss_decode':
        channels = get_output_channels(head)
        return (None if channels == 1 else channels), ''  # one channel: MG215 reports it, or it is not a class weight
    if loss.key != 'loss_cls' or not loss.is_a('CrossEntropyLoss', 'GuardedCrossEntropyLoss'):
        return None, ''
    if head.is_a('BBoxHead', 'DETRHead') and head.name != 'DETRHead':  # DETRHead takes a number
        extra = ' ({classes} and the background)' if head.is_a('BBoxHead') else ' ({classes} and "no object")'
        if loss.get('use_sigmoid', False):
            return classes, ''
        return classes + 1, Message(extra, classes=quantity(classes, 'class'))
    return None, ''


def fit_weights(weights: Sequence[Any], expected: int, extra: str) -> Tuple[List[Any], bool]:
    """Return a list of ``expected`` weights, and True if none is a guess, because all classes have equal weights.

    Example:
        >>> fit_weights([1.0] * 80 + [0.1], 4, '"no object"'), fit_weights([2.0, 1.5], 3, '')
        (([1.0, 1.0, 1.0, 0.1], True), ([1.0, 1.0, 1.0], False))
    """
    given = list(weights)
    last = [NO_OBJECT] if '"no object"' in extra else [1.0]
    if extra and len(given) == expected - 1:
        return [*given, *last], False
    same = given[:-1] if extra else given
    if len(given) > 1 and all(weight == given[0] for weight in same):
        return [given[0]] * (expected - (len(given) - len(same))) + given[len(same) :], True
    return ([1.0] * (expected - 1) + last) if extra else [1.0] * expected, False


def format_weights(weights: Sequence[Any]) -> str:
    """Format weights as Python code, e.g. ``[1.0] * 80 + [0.1]``."""
    first, *rest = weights
    if all(weight == first for weight in rest):
        return f'[{first}] * {len(weights)}'
    if len(rest) > 1 and all(weight == first for weight in rest[:-1]):
        return f'[{first}] * {len(rest)} + [{rest[-1]}]'
    return str(list(weights))


SOFTMAX = ('CrossEntropyLoss', 'GuardedCrossEntropyLoss', 'OhemCrossEntropy')


def get_output_channels(head: Part) -> int:
    """Return the output channels of a segmentation head, or 0 if it does not set them."""
    channels = head.config.get('out_channels') or head.config.get('num_classes')
    return channels if isinstance(channels, int) else 0


def is_softmax(loss: Part) -> bool:
    """Return True if an mmseg loss applies a softmax over the head's channels."""
    if loss.name == 'OhemCrossEntropy':
        return True
    return (
        loss.is_a(*SOFTMAX)
        and loss.scope == 'mmseg'
        and not loss.get('use_sigmoid', False)
        and not loss.get('use_mask', False)
    )


def find_one_channel_softmax(config: ReadConfig) -> List[Part]:
    """Return losses that apply a softmax to only one channel: such a loss is always 0 or raises an IndexError."""
    if config.scope != 'mmseg':
        return []
    return [
        loss
        for loss in map(unwrap_stock_loss, find_losses(config))
        if loss.key == 'loss_decode' or loss.path.endswith('.loss')
        if loss.owner is not None and get_output_channels(loss.owner) == 1 and is_softmax(loss)
        if not loss.owner.is_a('STDCHead')
    ]


#: Heads whose loss_decode classifies queries, with a weight for "no object"; ignored pixels never reach this loss.
SIDE_ADAPTER = ('SideAdapterCLIPHead',)


def find_weighted_cross_entropies(config: ReadConfig) -> List[Part]:
    """Return mmseg's softmax losses that look up ``class_weight[label]`` for every pixel.

    CrossEntropyLoss does so with ``reduction='mean'`` and without ``avg_factor``, which no decode head of mmseg passes.
    ``avg_non_ignore`` does not matter, because the look-up comes first. The guarded loss avoids this look-up.
    """
    return [
        loss
        for loss in find_losses(config)
        if loss.name == 'CrossEntropyLoss'
        and loss.scope == 'mmseg'
        and loss.key == 'loss_decode'
        and loss.config.get('class_weight') is not None
        and not (loss.owner is not None and loss.owner.is_a(*SIDE_ADAPTER))
        and not loss.get('use_sigmoid', False)
        and not loss.get('use_mask', False)
        and loss.get('reduction', 'mean') == 'mean'
    ]


def is_sigmoid_of_maps(loss: Part) -> bool:
    """Return True if a loss is mmseg's CrossEntropyLoss with sigmoid, whose class_weight becomes pos_weight."""
    return (
        loss.name == 'CrossEntropyLoss'
        and loss.scope == 'mmseg'
        and loss.key == 'loss_decode'
        and bool(loss.get('use_sigmoid', False))
    )


def find_ignore_index(loss: Part) -> Optional[int]:
    """Return the ignored label that a head passes to its loss, or ``None`` if the loss has no head."""
    value = None if loss.owner is None else loss.owner.get('ignore_index', 255)
    return value if isinstance(value, int) else None
