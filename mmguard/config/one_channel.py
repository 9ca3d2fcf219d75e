"""Losses that take a softmax of a single channel."""

from __future__ import annotations

from typing import List

from mmguard.config.parts import Part, losses, stock_loss
from mmguard.config.read import ReadConfig

SOFTMAX = ('CrossEntropyLoss', 'GuardedCrossEntropyLoss', 'OhemCrossEntropy')


def output_channels(head: Part) -> int:
    """Output channels of a segmentation head; 0 where it is not said."""
    channels = head.config.get('out_channels') or head.config.get('num_classes')
    return channels if isinstance(channels, int) else 0


def is_softmax(loss: Part) -> bool:
    """Whether a loss of mmseg takes a softmax over the channels of its head."""
    if loss.name == 'OhemCrossEntropy':
        return True
    return (
        loss.is_a(*SOFTMAX)
        and loss.scope == 'mmseg'
        and not loss.get('use_sigmoid', False)
        and not loss.get('use_mask', False)
    )


def one_channel_softmax(config: ReadConfig) -> List[Part]:
    """The losses that are always 0, or an IndexError: one channel, and a softmax over it."""
    if config.scope != 'mmseg':
        return []
    return [
        loss
        for loss in map(stock_loss, losses(config))
        if loss.key == 'loss_decode' or loss.path.endswith('.loss')
        if loss.owner is not None and output_channels(loss.owner) == 1 and is_softmax(loss)
        if not loss.owner.is_a('STDCHead')
    ]
