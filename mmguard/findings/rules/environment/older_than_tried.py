from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, is_within
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule


class OlderThanTried(EnvironmentRule):
    """A version that mmguard does not support."""

    code = 'MG512'
    summary = 'torch or numpy is older than mmguard supports.'
    why = "mmguard's tests were run with no version that is so old; pyproject.toml asks for newer ones."
    advice = 'Install a newer one: docs/stacks.md lists the versions that were tried.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for name, versions in environment.tried.items():
            version = environment.version(name)
            if version and versions and is_within(version, '', versions[0]):
                yield self.found(
                    f'mmguard needs {name} {versions[0]} or newer.',
                    f'{name} {version}',
                    edits=[Edit(f'`pip install "{name}>={versions[0]}"`', SAFE, environment=((name, versions[-1]),))],
                    places=(f'mmguard with {name}',),
                )
