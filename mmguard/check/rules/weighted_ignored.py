from __future__ import annotations

from typing import Iterator

from mmguard.check.class_weights import class_weights
from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.rule import Rule
from mmguard.check.stock_cross_entropy import ignored_by, weighted_cross_entropies
from mmguard.stack import ignored_labels_weigh


class WeightedIgnored(Rule):
    """F1: class_weight[255]; F3 in onedl's fork."""

    code = 'MG214'
    summary = "MMSegmentation's CrossEntropyLoss with class_weight fails at the first ignored pixel."
    why = (
        'To average, it looks up class_weight[label] for every pixel, the ignored ones (255) included: IndexError, on '
        'a GPU a device-side assert whose trace often points at accuracy(). Your labels are right, and '
        'avg_non_ignore=True does not help: the look-up comes first. The onedl fork looks up none of the ignored ones, '
        'but with avg_non_ignore=True its mask does not fit, and any label map ends the run.'
    )
    advice = "Write type='GuardedCrossEntropyLoss' with the same arguments (and custom_imports of mmguard)."

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for loss in weighted_cross_entropies(config):
            ignored = ignored_by(loss)
            weights = loss.config['class_weight']
            length = class_weights(loss).length
            if not ignored_labels_weigh():
                if loss.get('avg_non_ignore', False):
                    yield self.at(
                        loss.at('class_weight'),
                        weights,
                        "With avg_non_ignore=True the loss of onedl's mmseg masks the class weights with a shape that "
                        'does not fit, and the run ends. The labels are right.',
                    )
                continue
            if ignored is None or (length is not None and -length <= ignored < length):
                continue
            yield self.at(
                loss.at('class_weight'),
                weights,
                f'The loss looks up class_weight[{ignored}] for every ignored pixel: there is no such entry, and the '
                f'run ends. The labels are right.',
            )
