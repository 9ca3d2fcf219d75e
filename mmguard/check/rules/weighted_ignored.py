from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import ConfigFinding
from mmguard.check.rule import Rule
from mmguard.check.stock_cross_entropy import ignored_by, weighted_cross_entropies


class WeightedIgnored(Rule):
    """F1: class_weight[255]."""

    code = 'MG214'
    summary = "MMSegmentation's CrossEntropyLoss with class_weight fails at the first ignored pixel."
    why = (
        'To average, it looks up class_weight[label] for every pixel, the ignored ones (255) included: IndexError, on '
        'a GPU a device-side assert whose trace often points at accuracy(). Your labels are right, and '
        'avg_non_ignore=True does not help: the look-up comes first.'
    )
    advice = "Write type='GuardedCrossEntropyLoss' with the same arguments (and custom_imports of mmguard)."

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for loss in weighted_cross_entropies(config):
            ignored = ignored_by(loss)
            weights = loss.config['class_weight']
            length = len(weights) if isinstance(weights, (list, tuple)) else None
            if ignored is None or (length is not None and -length <= ignored < length):
                continue
            yield self.at(
                loss.at('class_weight'),
                weights,
                f'The loss looks up class_weight[{ignored}] for every ignored pixel: there is no such entry, and the '
                f'run ends. The labels are right.',
            )
