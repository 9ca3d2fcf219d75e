from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import losses
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import INFO, Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import guard_losses


class UnguardedOhem(ConfigRule):
    """An OhemCrossEntropy that may find nothing to mine (F6)."""

    code = 'MG218'
    summary = 'OhemCrossEntropy without a guard: a batch without a valid pixel ends distributed training.'
    title = 'OhemCrossEntropy returns a loss without a graph where all pixels of a batch are ignored.'
    why = (
        'Where all pixels of one rank are ignored it returns a constant without a graph. DistributedDataParallel then '
        'ends with "Expected to have finished reduction in the prior iteration", or hangs.'
    )
    example = Example(wrong="dict(type='OhemCrossEntropy')", right="dict(type='GuardedOhemCrossEntropy')")
    limits = 'It does not know whether a crop can be ignored as a whole, nor whether several ranks train.'
    advice = "Write type='GuardedOhemCrossEntropy' with the same arguments."
    severity = INFO
    on_request = True

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for loss in losses(config):
            if loss.name == 'OhemCrossEntropy' and not loss.path.endswith('.loss'):
                ways = [guard_losses(config, [loss.path])]
                yield self.report_at(loss.at('type'), loss.config['type'], edits=ways)
