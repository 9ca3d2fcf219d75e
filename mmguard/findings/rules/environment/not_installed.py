from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from mmguard.compat.stack import STACKS, find_stacks
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import DISTRIBUTIONS, EnvironmentFacts, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import NEWEST, find_command
from mmguard.findings.rule import EnvironmentRule, Example


class NotInstalled(EnvironmentRule):
    """A missing package that another one needs."""

    code = 'MG505'
    summary = 'A required package is missing.'
    title = 'A required package is missing: {module} (needed by {needing}).'
    why = 'mmguard needs torch and numpy, mmseg and mmdet need mmengine and mmcv: their import fails.'
    example = Example(wrong='pip install mmsegmentation', right='pip install mmsegmentation mmengine; mim install mmcv')
    limits = 'It looks for torch, numpy, mmengine and mmcv; what else a framework needs, its import says (MG506).'
    advice = (
        'Install it from the stack that is installed. If no version fits, make a new environment with versions that '
        'docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module in ('torch', 'numpy', 'mmengine', 'mmcv'):
            if module not in environment.missing or environment.find_installed(module):
                continue
            needed, severity = _find_needing(module, environment.missing)
            if needed is not None:
                evidence, words, ways = (
                    f'no module {module}',
                    dict(module=module, needing=needed),
                    _ways(module, environment),
                )
                yield self.report(evidence, words, severity=severity, edits=list(ways), places=(line_of(module),))


def _find_needing(module: str, missing: List[str]) -> Tuple[Optional[str], str]:
    if module in ('torch', 'numpy'):
        return 'mmguard', ERROR
    needing = [name for name in ('mmseg', 'mmdet') if name not in missing]
    if needing:
        return ' and '.join(needing), ERROR
    if module == 'mmcv' and 'mmengine' not in missing:
        return 'GuardSegLabels and GuardInstanceLabels', WARNING
    return None, ''


def _ways(module: str, environment: EnvironmentFacts) -> Iterator[Edit]:
    if module not in next(iter(STACKS.values())):
        becomes = (DISTRIBUTIONS[module][0], NEWEST)
        yield Edit(f'Install {module}.', SAFE, environment=(becomes,), commands=(f'pip install {module}',))
        return
    for stack in find_stacks(environment.versions) or STACKS:
        command, becomes = find_command(module, stack, environment)
        yield Edit(f'Install {module} of {stack}.', SAFE, environment=(becomes,), commands=(command,))
