from __future__ import annotations

from dataclasses import replace
from typing import Iterator

from mmguard.compat.stack import ignored_labels_weigh
from mmguard.config.losses import class_weights, ignored_by, weighted_cross_entropies
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Facts
from mmguard.findings.usual_edits import guarded, set_ignore_index


class NegativeIgnoreIndex(ConfigRule):
    """F2: the workaround that circulates. The onedl fork looks up no ignored label."""

    code = 'MG216'
    aliases = ('MG139',)
    summary = 'ignore_index=-1 with class_weight: runs, and the loss is wrong.'
    why = (
        "It is passed around against the crash of MG214. class_weight[-1] is the weight of the last class: the loss's "
        'denominator counts it for every ignored pixel, so the loss is too small, by a factor that changes from image '
        'to image (1.00 instead of 3.36 in our case).'
    )
    advice = (
        "Write `ignore_index=255` again, and `type='GuardedCrossEntropyLoss'` with the same arguments: it counts no "
        'ignored pixel.'
    )

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in weighted_cross_entropies(config) if ignored_labels_weigh() else ():
            ignored = ignored_by(loss)
            length = class_weights(loss).length or 1
            head = loss.owner
            if ignored is not None and -length <= ignored < 0 and head is not None:
                yield self.at(
                    head.at('ignore_index'),
                    ignored,
                    f'class_weight[{ignored}] of {loss.path}, a weight of a real class, is added to the denominator '
                    f'for every ignored pixel: the loss is too small.',
                    edits=[_guarded(config)],
                )


def _guarded(config: ReadConfig) -> Edit:
    """Every head at once: what is ignored must be one label."""
    weighted = [loss.path for loss in weighted_cross_entropies(config)]
    swap = guarded(config, weighted, NegativeIgnoreIndex.advice)
    return replace(swap, config=(*set_ignore_index(Facts(config=config), 255).config, *swap.config))
