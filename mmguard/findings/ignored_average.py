"""Losses that count ignored pixels in their average: many invalid labels, once they are ignored, lower them."""

from __future__ import annotations

from typing import List

from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.rule import Facts
from mmguard.findings.views import is_trained_on, share, trained

#: Share of invalid among the labelled pixels below which the average hardly changes.
MANY = 0.05
_LOSSES = ('CrossEntropyLoss', 'GuardedCrossEntropyLoss')
#: Names of pixel losses: in mmseg, and in mmdet for panoptic labels.
_OF_PIXELS = ('loss_decode', 'loss_seg')


def describe_lowered_average(facts: Facts) -> str:
    """Report that invalid pixels, once they are ignored, lower the loss; empty if they do not, or are few."""
    labels, config = facts.labels, facts.config
    if labels is None or config is None or labels.kind != 'pixels' or not is_trained_on(labels):
        return ''
    counts = trained(labels)
    labelled = sum(count for value, count in counts.items() if value != labels.ignore_index)
    invalid = share(sum(labels.values.values()), labelled)
    paths = _find_losses(config)
    if invalid <= MANY or not paths:
        return ''
    return (
        f'{100 * invalid:.3g} % of the labelled pixels are invalid. Where a guard or a label_map ignores them they are '
        f'ignored pixels, which {" and ".join(paths)} counts in the average (avg_non_ignore=False): loss and gradient '
        f'shrink by that share. Write avg_non_ignore=True there, or correct the labels'
    )


def _find_losses(config: ReadConfig) -> List[str]:
    """Return the pixel losses whose average counts ignored pixels by number, without class weights."""
    return [
        loss.path
        for loss in losses(config)
        if loss.name in _LOSSES
        and loss.path.rsplit('.', 1)[-1].split('[')[0] in _OF_PIXELS
        and loss.get('class_weight') is None
        and loss.get('reduction', 'mean') == 'mean'
        and not loss.get('avg_non_ignore', False)
    ]
