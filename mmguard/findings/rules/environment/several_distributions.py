from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import find_installer
from mmguard.findings.rule import EnvironmentRule, Example


class SeveralDistributions(EnvironmentRule):
    """Packages that write the same folder."""

    code = 'MG503'
    summary = 'Several packages provide the same module.'
    title = '{names} write the same folder: the last installed wins.'
    why = 'They write the same folder: of each file, the one installed last is there, and uninstalling one breaks all.'
    example = Example(wrong='opencv-python 4.9 and opencv-python-headless 4.8', right='only one of them')
    limits = 'It cannot tell which of them wrote the files that are there.'
    advice = (
        'Uninstall all of them, then install one. If others need both, make a new environment with versions that '
        'docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in DISTRIBUTIONS:
            installed = environment.find_installed(module)
            if module == 'cv2' and len(set(installed.values())) == 1:  # the same files, as onedl-mmdetection brings
                continue
            if len(installed) < 2:
                continue
            remove = f'pip uninstall -y {" ".join(installed)}'
            ways = [
                Edit(
                    f'Keep only {name}.',
                    SAFE,
                    environment=(*((one, None) for one in installed), (name, version)),
                    commands=(remove, f'{find_installer(name)} {name}=={version}'),
                )
                for name, version in installed.items()
            ]
            evidence = ', '.join(f'{name} {version}' for name, version in installed.items())
            words, severity = dict(names=' and '.join(installed)), WARNING if module == 'cv2' else ERROR
            yield self.report(evidence, words, severity=severity, edits=ways, places=(line_of(module),))
