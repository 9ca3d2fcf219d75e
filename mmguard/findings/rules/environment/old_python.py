from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts, version_key
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule


class OldPython(EnvironmentRule):
    """A Python that mmguard does not know."""

    code = 'MG501'
    summary = 'Python is older than 3.8.'
    why = 'mmguard uses what came with Python 3.8: it does not even begin to run.'
    advice = 'Make an environment with Python 3.8 or newer.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        if version_key(environment.python) < version_key('3.8'):
            yield self.found(self.summary, f'Python {environment.python}', places=('python',))
