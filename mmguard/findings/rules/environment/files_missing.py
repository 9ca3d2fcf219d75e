from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, line_of
from mmguard.findings.finding import Finding
from mmguard.findings.rule import EnvironmentRule


class FilesMissing(EnvironmentRule):
    """A package that pip lists and Python does not find."""

    code = 'MG504'
    summary = 'A package is installed, but its files are missing.'
    why = 'Its import fails, and pip install says "Requirement already satisfied".'
    advice = 'Install it again: `pip install --force-reinstall --no-deps PACKAGE`.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in environment.missing:
            for name, version in list(environment.installed(module).items())[:1]:
                yield self.found(
                    f'{name} is installed, but its files are missing.',
                    f'{name} {version}, and no module {module}',
                    edits=[
                        Edit(
                            f'Install it again: `pip install --force-reinstall --no-deps {name}=={version}`',
                            SAFE,
                            environment=((name, version),),
                        )
                    ],
                    places=(line_of(module),),
                )
