from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import mmcv_again
from mmguard.findings.rule import EnvironmentRule

#: Its line.
LINE = "mmcv's compiled ops"


class CompiledOps(EnvironmentRule):
    """mmcv without its ops, or with those for another torch."""

    code = 'MG509'
    summary = "mmcv's compiled ops are not there, or cannot be loaded."
    why = 'Deformable convolutions, NMS, RoIAlign and mmdet need them. They are compiled for one torch and one CUDA.'
    advice = 'Install mmcv again: mim takes the wheel for the torch that is there, or compiles it, which takes minutes.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        if environment.ops is False:
            lite = 'mmcv-lite has none' if 'mmcv-lite' in environment.versions else 'no mmcv/_ext in its folder'
            cause, evidence = 'mmcv has no compiled ops.', lite
            severity = ERROR if 'mmdet' not in environment.missing else WARNING
        elif environment.ops and 'mmcv.ops' in environment.errors and 'mmcv' not in environment.errors:
            torch = environment.version('torch') or 'unknown'
            cause, evidence = 'mmcv was compiled for another torch than is installed.', environment.errors['mmcv.ops']
            evidence, severity = f'{evidence}; torch is {torch}', ERROR
        else:
            return
        yield self.found(cause, evidence, severity=severity, edits=[mmcv_again(environment)], places=(LINE,))
