from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, is_within
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule, Example


class OlderThanTried(EnvironmentRule):
    """A version that mmguard does not support."""

    code = 'MG512'
    summary = 'torch or numpy is older than mmguard supports.'
    title = '{name} {version} is too old: mmguard needs {oldest} or newer.'
    why = "mmguard's tests were run with no version that is so old; pyproject.toml asks for newer ones."
    example = Example(wrong='torch 1.12.1', right='pip install "torch>=1.13.1"')
    limits = 'Newer versions than those that were tried are not reported.'
    advice = 'Install a newer one, or make a new environment: docs/stacks.md lists the versions that were tried.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for name, versions in environment.tried.items():
            version = environment.version(name)
            if version and versions and is_within(version, '', versions[0]):
                command, becomes = f'pip install "{name}>={versions[0]}"', (name, versions[-1])
                edit = Edit(f'Install a newer {name}.', SAFE, environment=(becomes,), commands=(command,))
                words, places = dict(name=name, version=version, oldest=versions[0]), (f'mmguard with {name}',)
                yield self.report(f'{name} {version}', words, edits=[edit], places=places)
