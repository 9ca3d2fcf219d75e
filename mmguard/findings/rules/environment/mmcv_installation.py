from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts, is_within, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import describe_limits, reinstall_mmcv
from mmguard.findings.rule import EnvironmentRule, Example

#: The first mmcv of mmengine.
_FIRST = '2.0.0dev0'


class MmcvNotAccepted(EnvironmentRule):
    """A framework that refuses the installed mmcv."""

    code = 'MG508'
    summary = 'A framework does not accept the version of mmcv that is installed.'
    title = 'mmcv {version} is not accepted by {names}.'
    title_old = 'mmcv {version} belongs to mmseg 0.x and mmdet 2.x.'
    why = 'mmseg and mmdet look at the version when they are imported, and end with an AssertionError (MMCV==...).'
    example = Example(wrong='mmcv 2.2.0 with mmdet 3.3.0', right='mim install "mmcv>=2.0.0rc4,<2.2.0"')
    limits = 'It reads the limits that the frameworks state; an mmcv within them may still fail.'
    advice = (
        'Install an mmcv within the limits that are shown. If the frameworks have no version in common, make a new '
        'environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        version = environment.version('mmcv')
        refusing = {
            name: limits for name, limits in environment.accepts.items() if version and not is_within(version, *limits)
        }
        is_old = bool(version) and not is_within(version, _FIRST)
        if refusing or is_old:
            said = [f'{name} accepts {describe_limits(limits)}' for name, limits in refusing.items()]
            broken = [line_of(name) for name in refusing if 'MMCV' in environment.errors.get(name, '')]
            title, words = self.title_old if is_old else self.title, dict(version=version, names=' and '.join(refusing))
            evidence, ways = '; '.join([f'mmcv {version}', *said]), [reinstall_mmcv(environment)]
            places = (*[line_of('mmcv')] * is_old, *(f'mmcv for {name}' for name in refusing), *broken)
            yield self.report(evidence, words, title, edits=ways, places=places)


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
