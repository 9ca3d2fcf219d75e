from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule
from mmguard.findings.usual_edits import guarded


class UnguardedOhem(ConfigRule):
    """F6: nothing to mine."""

    code = 'MG218'
    summary = 'OhemCrossEntropy without a guard: a batch without a valid pixel ends distributed training.'
    why = (
        'Where all pixels of one rank are ignored it returns a constant without a graph. DistributedDataParallel then '
        'ends with "Expected to have finished reduction in the prior iteration", or hangs.'
    )
    advice = "Write type='GuardedOhemCrossEntropy' with the same arguments."
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            if loss.name == 'OhemCrossEntropy' and not loss.path.endswith('.loss'):
                yield self.at(
                    loss.at('type'),
                    loss.config['type'],
                    'A crop of ignored pixels alone leaves it without a graph.',
                    edits=[guarded(config, [loss.path], self.advice)],
                )
