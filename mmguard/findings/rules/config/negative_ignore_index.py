from __future__ import annotations

from dataclasses import replace
from typing import Iterator

from mmguard.compat.stack import weighs_ignored_labels
from mmguard.config.losses import class_weights, find_ignore_index, find_weighted_cross_entropies
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit, config_lines
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example, Facts
from mmguard.findings.usual_edits import guard_losses, set_ignore_index


class NegativeIgnoreIndex(ConfigRule):
    """The workaround that circulates (F2). The onedl fork looks up no ignored label."""

    code = 'MG216'
    aliases = ('MG139',)
    summary = 'ignore_index=-1 with class_weight: runs, and the loss is wrong.'
    title = (
        'class_weight[{ignored}] of {place}, the weight of a real class, is added to the denominator for every ignored '
        'pixel: the loss is too small.'
    )
    why = (
        "It is passed around against the crash of MG214. class_weight[-1] is the weight of the last class: the loss's "
        'denominator counts it for every ignored pixel, so the loss is too small, by a factor that changes from image '
        'to image (1.00 instead of 3.36 in our case).'
    )
    example = Example(
        wrong="ignore_index=-1, loss_decode=dict(type='CrossEntropyLoss', class_weight=[...])",
        right="ignore_index=255, loss_decode=dict(type='GuardedCrossEntropyLoss', class_weight=[...])",
    )
    limits = 'It does not know whether any pixel is ignored; without one the loss is right.'
    advice = (
        "Write ignore_index=255 again, and type='GuardedCrossEntropyLoss' with the same arguments: it excludes ignored "
        'pixels from the average.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in find_weighted_cross_entropies(config) if weighs_ignored_labels() else ():
            ignored = find_ignore_index(loss)
            length = class_weights(loss).length or 1
            head = loss.owner
            if ignored is not None and -length <= ignored < 0 and head is not None:
                words = dict(ignored=ignored, place=loss.path)
                yield self.report_at(head.at('ignore_index'), ignored, words, edits=[_guard_all(config)])


def _guard_all(config: ReadConfig) -> Edit:
    """Guard the losses of every head at once: what is ignored must be one label."""
    weighted = [loss.path for loss in find_weighted_cross_entropies(config)]
    swap = guard_losses(config, weighted, 'Guard the loss, and ignore 255 again.')
    ignored = set_ignore_index(Facts(config=config), 255).config
    return replace(swap, config=(*ignored, *swap.config), lines=(*config_lines(ignored), *swap.lines))
