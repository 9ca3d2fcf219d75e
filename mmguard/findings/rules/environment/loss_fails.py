from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule
from mmguard.text.failures import REPORT_IT


class LossFails(EnvironmentRule):
    """A guarded loss that does not work with what is installed."""

    code = 'MG513'
    summary = "mmguard's own loss does not work here."
    why = 'Three labels, one of them invalid: the loss raises, or differs from that of PyTorch without the invalid one.'
    advice = f'The fault is in mmguard or in torch, not in your config: {REPORT_IT}.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        if environment.loss_fails:
            yield self.found(self.summary, environment.loss_error, places=('a guarded loss',))
