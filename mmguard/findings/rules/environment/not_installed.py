from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from mmguard.compat.stack import STACKS, stacks_among
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import NEWEST, to_install
from mmguard.findings.rule import EnvironmentRule


class NotInstalled(EnvironmentRule):
    """A package that is not there and that another needs."""

    code = 'MG505'
    summary = 'A package is missing that what is installed cannot do without.'
    why = 'mmguard needs torch and numpy, mmseg and mmdet need mmengine and mmcv: their import fails.'
    advice = 'Install it, from the stack that is there.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in ('torch', 'numpy', 'mmengine', 'mmcv'):
            if module not in environment.missing or environment.installed(module):
                continue
            needed, severity = _needed(module, environment.missing)
            if needed is not None:
                yield self.found(
                    f'{module} is not installed: {needed}.',
                    f'no module {module}',
                    severity=severity,
                    edits=list(_ways(module, environment)),
                    places=(line_of(module),),
                )


def _needed(module: str, missing: List[str]) -> Tuple[Optional[str], str]:
    if module in ('torch', 'numpy'):
        return 'mmguard cannot do without', ERROR
    needing = [name for name in ('mmseg', 'mmdet') if name not in missing]
    if needing:
        return f'{" and ".join(needing)} cannot do without', ERROR
    if module == 'mmcv' and 'mmengine' not in missing:
        return 'GuardSegLabels and GuardInstanceLabels need it', WARNING
    return None, ''


def _ways(module: str, environment: EnvironmentFacts) -> Iterator[Edit]:
    if module not in next(iter(STACKS.values())):
        yield Edit(f'`pip install {module}`', SAFE, environment=((DISTRIBUTIONS[module][0], NEWEST),))
        return
    for stack in stacks_among(environment.versions) or STACKS:
        command, becomes = to_install(module, stack, environment)
        yield Edit(f'`{command}`', SAFE, environment=(becomes,))
