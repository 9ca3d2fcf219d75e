from __future__ import annotations

from typing import Iterator

from mmguard.check.class_weights import class_weights
from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.rule import Rule
from mmguard.check.stock_cross_entropy import ignored_by, weighted_cross_entropies
from mmguard.stack import ignored_labels_weigh


class NegativeIgnoreIndex(Rule):
    """F2: the workaround that circulates. The onedl fork looks up no ignored label."""

    code = 'MG216'
    summary = 'ignore_index=-1 with class_weight: runs, and the loss is wrong.'
    why = (
        "It is passed around against the crash of MG214. class_weight[-1] is the weight of the last class: the loss's "
        'denominator counts it for every ignored pixel, so the loss is too small, by a factor that changes from image '
        'to image (1.00 instead of 3.36 in our case).'
    )
    advice = "Write ignore_index=255 again and type='GuardedCrossEntropyLoss' with the same arguments."

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
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
                )
