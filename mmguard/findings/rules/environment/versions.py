"""Versions that are too old, and an unsuitable mmcv."""

from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, is_within, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import describe_limits, reinstall_mmcv
from mmguard.findings.rule import EnvironmentRule, Example

#: First mmcv version that uses mmengine.
_FIRST = '2.0.0dev0'
#: Line of the ops in the table.
LINE = "mmcv's compiled ops"


class UnfitVersions(EnvironmentRule):
    """Versions that mmguard does not support."""

    code = 'MG507'
    aliases = ('MG512',)
    summary = 'Packages are installed in versions that mmguard does not support.'
    title = '{name} {version} is too old: mmguard needs {oldest} or newer.'
    why = 'mmguard is not tested with torch or numpy below its minimum versions.'
    example = Example(wrong='torch 1.10', right='pip install "torch>=1.13"')
    limits = (
        'It does not know versions that are too new, or pairs that do not work together: the import shows them (MG506).'
    )
    advice = (
        'Install a newer version. If that does not fit the rest, make a new environment with versions that '
        'docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for name, versions in environment.tried.items():
            version = environment.version(name)
            if version and versions and is_within(version, '', versions[0]):
                command, becomes = f'pip install "{name}>={versions[0]}"', (name, versions[-1])
                edit = Edit(f'Install a newer {name}.', SAFE, environment=(becomes,), commands=(command,))
                words, places = dict(name=name, version=version, oldest=versions[0]), (f'mmguard with {name}',)
                yield self.report(f'{name} {version}', words, edits=[edit], places=places)


class UnfitMmcv(EnvironmentRule):
    """An mmcv that a framework refuses, without ops, or with ops for another torch."""

    code = 'MG508'
    aliases = ('MG509',)
    summary = 'The installed mmcv has a version that a framework refuses, or lacks its compiled ops.'
    title = 'mmcv {version} is not accepted by {names}.'
    title_old = 'mmcv {version} belongs to mmseg 0.x and mmdet 2.x.'
    title_ops = 'mmcv has no compiled ops.'
    title_torch = 'mmcv was compiled for a different torch version.'
    why = (
        'mmseg and mmdet look at the version when they are imported, and end with an AssertionError (MMCV==...). '
        'Deformable convolutions, NMS, RoIAlign and mmdet need the ops, which are compiled for one torch and one CUDA.'
    )
    example = Example(wrong='mmcv 2.2.0 with mmdet 3.3.0', right='mim install "mmcv>=2.0.0rc4,<2.2.0"')
    limits = 'An mmcv within the limits that the frameworks state may still fail, as ops for another GPU do.'
    advice = (
        'Reinstall mmcv within the limits shown: mim takes the wheel for the installed torch, or compiles it, which '
        'takes minutes. Without a wheel, or a version that all frameworks accept, make a new environment with '
        'versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        version, ways = environment.version('mmcv'), [reinstall_mmcv(environment)]
        refusing = {
            name: limits for name, limits in environment.accepts.items() if version and not is_within(version, *limits)
        }
        is_old = bool(version) and not is_within(version, _FIRST)
        if refusing or is_old:
            said = [f'{name} accepts {describe_limits(limits)}' for name, limits in refusing.items()]
            broken = [line_of(name) for name in refusing if 'MMCV' in environment.errors.get(name, '')]
            title, words = self.title_old if is_old else self.title, dict(version=version, names=' and '.join(refusing))
            places = (*[line_of('mmcv')] * is_old, *(f'mmcv for {name}' for name in refusing), *broken)
            yield self.report('; '.join([f'mmcv {version}', *said]), words, title, edits=ways, places=places)
        if environment.ops is False:
            evidence = 'mmcv-lite has none' if 'mmcv-lite' in environment.versions else 'no mmcv/_ext in its folder'
            severity = ERROR if 'mmdet' not in environment.missing else WARNING
            yield self.report(evidence, title=self.title_ops, severity=severity, edits=ways, places=(LINE,))
        elif environment.ops and 'mmcv.ops' in environment.errors and 'mmcv' not in environment.errors:
            evidence = f'{environment.errors["mmcv.ops"]}; torch is {environment.version("torch") or "unknown"}'
            yield self.report(evidence, title=self.title_torch, edits=ways, places=(LINE,))
