from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, line_of
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule, Example


class FilesMissing(EnvironmentRule):
    """A package that pip lists and Python does not find."""

    code = 'MG504'
    summary = 'A package is installed, but its files are missing.'
    title = '{name} is installed, but its files are missing.'
    why = 'Its import fails, and pip install says "Requirement already satisfied".'
    example = Example(wrong='pip install PACKAGE', right='pip install --force-reinstall --no-deps PACKAGE')
    limits = 'A package whose files are only in part missing is seen when its import fails (MG506).'
    advice = (
        'Reinstall it with --force-reinstall. If its version is not available, make a new environment with versions '
        'that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in environment.missing:
            for name, version in list(environment.find_installed(module).items())[:1]:
                command = f'pip install --force-reinstall --no-deps {name}=={version}'
                edit = Edit(f'Reinstall {name}.', SAFE, environment=((name, version),), commands=(command,))
                evidence, places = f'{name} {version}, and no module {module}', (line_of(module),)
                yield self.report(evidence, dict(name=name), edits=[edit], places=places)
