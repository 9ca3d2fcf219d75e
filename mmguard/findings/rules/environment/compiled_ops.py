from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import reinstall_mmcv
from mmguard.findings.rule import EnvironmentRule, Example

#: Its line.
LINE = "mmcv's compiled ops"


class CompiledOps(EnvironmentRule):
    """An mmcv without its ops, or with those for another torch."""

    code = 'MG509'
    summary = "mmcv's compiled ops are missing, or cannot be loaded."
    title = 'mmcv has no compiled ops.'
    title_torch = 'mmcv was compiled for another torch than is installed.'
    why = 'Deformable convolutions, NMS, RoIAlign and mmdet need them. They are compiled for one torch and one CUDA.'
    example = Example(wrong='pip install mmcv-lite', right='mim install "mmcv>=2.0.0,<2.2.0"')
    limits = 'Ops that load, but were compiled for another GPU, are not seen.'
    advice = (
        'Reinstall mmcv: mim takes the wheel for the installed torch, or compiles it, which takes minutes. If there is '
        'none for it, make a new environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        if environment.ops is False:
            evidence = 'mmcv-lite has none' if 'mmcv-lite' in environment.versions else 'no mmcv/_ext in its folder'
            title, severity = self.title, ERROR if 'mmdet' not in environment.missing else WARNING
        elif environment.ops and 'mmcv.ops' in environment.errors and 'mmcv' not in environment.errors:
            evidence = f'{environment.errors["mmcv.ops"]}; torch is {environment.version("torch") or "unknown"}'
            title, severity = self.title_torch, ERROR
        else:
            return
        ways = [reinstall_mmcv(environment)]
        yield self.report(evidence, title=title, severity=severity, edits=ways, places=(LINE,))
