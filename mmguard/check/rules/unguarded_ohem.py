from __future__ import annotations

from typing import Iterator

from mmguard.check.config import ReadConfig
from mmguard.check.finding import INFO, ConfigFinding
from mmguard.check.parts import losses
from mmguard.check.rule import Rule


class UnguardedOhem(Rule):
    """F6: nothing to mine."""

    code = 'MG218'
    summary = 'OhemCrossEntropy without a guard: a batch without a valid pixel ends distributed training.'
    why = (
        'Where all pixels of one rank are ignored it returns a constant without a graph. DistributedDataParallel then '
        'ends with "Expected to have finished reduction in the prior iteration", or hangs.'
    )
    advice = "Write dict(type='GuardedLoss', loss=dict(type='OhemCrossEntropy', ...))."
    severity = INFO
    on_request = True

    def find(self, config: ReadConfig) -> Iterator[ConfigFinding]:
        for loss in losses(config):
            if loss.name == 'OhemCrossEntropy' and not loss.path.endswith('.loss'):
                yield self.at(
                    loss.at('type'), loss.config['type'], 'A crop of ignored pixels alone leaves it without a graph.'
                )
