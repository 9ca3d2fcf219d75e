from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import installer_of
from mmguard.findings.rule import EnvironmentRule


class SeveralDistributions(EnvironmentRule):
    """Packages that write the same folder."""

    code = 'MG503'
    summary = 'Several packages provide the same module.'
    why = 'They write the same folder: of each file, the one installed last is there, and uninstalling one breaks all.'
    advice = 'Uninstall all of them, then install one.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in DISTRIBUTIONS:
            installed = environment.installed(module)
            if module == 'cv2' and len(set(installed.values())) == 1:  # the same files, as onedl-mmdetection brings
                continue
            if len(installed) < 2:
                continue
            yield self.found(
                f'{" and ".join(installed)} write the same folder, the last installed wins.',
                ', '.join(f'{name} {version}' for name, version in installed.items()),
                severity=WARNING if module == 'cv2' else ERROR,
                edits=[
                    Edit(
                        f'`pip uninstall -y {" ".join(installed)}`, then `{installer_of(name)} {name}=={version}`',
                        SAFE,
                        environment=(*((one, None) for one in installed), (name, version)),
                    )
                    for name, version in installed.items()
                ],
                places=(line_of(module),),
            )
