"""Incompatible versions, and an unsuitable mmcv."""

from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentFacts, is_within, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import describe_limits, reinstall_mmcv
from mmguard.findings.rule import EnvironmentRule, Example

#: Modules compiled against NumPy 1: version limit, consequence, and source.
COMPILED = {
    'torch': ('2.3', 'cannot convert arrays', 'https://github.com/pytorch/pytorch/issues/107302'),
    'cv2': ('4.10.0.83', 'cannot be imported', 'https://github.com/opencv/opencv/issues/25772'),
}
#: First mmcv version that uses mmengine.
_FIRST = '2.0.0dev0'
#: Line of the ops in the table.
LINE = "mmcv's compiled ops"


class UnfitVersions(EnvironmentRule):
    """Versions known to be incompatible, or not supported by mmguard."""

    code = 'MG507'
    aliases = ('MG512',)
    summary = 'Packages are installed in versions that do not go together, or that mmguard does not support.'
    title = '{one} and {other} do not go together: the latter was compiled against NumPy 1, and {why}.'
    title_old = '{name} {version} is too old: mmguard needs {oldest} or newer.'
    why = (
        'Binaries that were compiled against NumPy 1 fail with NumPy 2: torch below 2.3 cannot convert arrays, OpenCV '
        'up to 4.10.0.82 cannot be imported. mmguard is not tested with torch or numpy below its minimum versions.'
    )
    example = Example(wrong='numpy 2.1 with torch 2.1', right='pip install "numpy<2"')
    limits = 'It knows these two pairs, and no versions that are too new; others show when they are imported (MG506).'
    advice = (
        'Install `numpy<2`, or a newer version of the other package. If that does not fit the rest, make a new '
        'environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for module, (below, why, source) in COMPILED.items():
            if environment.is_from('numpy', '2') and environment.is_from(module, '', below):
                one, other = (f'{name} {environment.version(name)}' for name in ('numpy', module))
                change = (('numpy', '1.26.4'),)
                edit = Edit('Install NumPy 1.', SAFE, environment=change, commands=('pip install "numpy<2"',))
                words, places = dict(one=one, other=other, why=why), (line_of('numpy'),)
                yield self.report(f'{one} next to {other} ({source})', words, edits=[edit], places=places)
        for name, versions in environment.tried.items():
            version = environment.version(name)
            if version and versions and is_within(version, '', versions[0]):
                command, becomes = f'pip install "{name}>={versions[0]}"', (name, versions[-1])
                edit = Edit(f'Install a newer {name}.', SAFE, environment=(becomes,), commands=(command,))
                words, places = dict(name=name, version=version, oldest=versions[0]), (f'mmguard with {name}',)
                yield self.report(f'{name} {version}', words, self.title_old, edits=[edit], places=places)


class UnfitMmcv(EnvironmentRule):
    """An mmcv that a framework refuses, without ops, or with ops for another torch."""

    code = 'MG508'
    aliases = ('MG509',)
    summary = 'The installed mmcv is of a version that a framework refuses, or lacks its compiled ops.'
    title = 'mmcv {version} is not accepted by {names}.'
    title_old = 'mmcv {version} belongs to mmseg 0.x and mmdet 2.x.'
    title_ops = 'mmcv has no compiled ops.'
    title_torch = 'mmcv was compiled for another torch than is installed.'
    why = (
        'mmseg and mmdet look at the version when they are imported, and end with an AssertionError (MMCV==...). '
        'Deformable convolutions, NMS, RoIAlign and mmdet need the ops, which are compiled for one torch and one CUDA.'
    )
    example = Example(wrong='mmcv 2.2.0 with mmdet 3.3.0', right='mim install "mmcv>=2.0.0rc4,<2.2.0"')
    limits = 'An mmcv within the limits that the frameworks state may still fail, as ops for another GPU do.'
    advice = (
        'Reinstall mmcv within the limits that are shown: mim takes the wheel for the installed torch, or compiles it, '
        'which takes minutes. Without a wheel, or a version that all frameworks accept, make a new environment '
        'with versions that docs/stacks.md lists.'
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
