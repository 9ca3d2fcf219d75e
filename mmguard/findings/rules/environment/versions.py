"""Versions that do not go together, and an mmcv that does not fit."""

from __future__ import annotations

from typing import Iterator, NamedTuple, Tuple

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.environment import EnvironmentChanges, EnvironmentFacts, is_within, line_of
from mmguard.findings.finding import ERROR, WARNING, Finding
from mmguard.findings.installing import describe_limits, reinstall_mmcv
from mmguard.findings.rule import EnvironmentRule, Example

#: A module in a version from, up to but not including; empty: no limit.
Versions = Tuple[str, str, str]


class Pair(NamedTuple):
    """Versions of a module that do not go with versions of another.

    Attributes:
        module, other (tuple): The module, and what it does not go with.
        severity (str): One of ``SEVERITIES``.
        why (str): What happens.
        install (str): What to type.
        becomes (tuple): What that installs.
        source (str): Where it is said.
    """

    module: Versions
    other: Versions
    severity: str
    why: str
    install: str
    becomes: EnvironmentChanges
    source: str


PAIRS = (
    Pair(
        ('numpy', '2', ''),
        ('torch', '', '2.3'),
        ERROR,
        'torch below 2.3 was compiled against NumPy 1, and cannot convert arrays',
        'pip install "numpy<2"',
        (('numpy', '1.26.4'),),
        'https://github.com/pytorch/pytorch/issues/107302',
    ),
    Pair(
        ('numpy', '2', ''),
        ('cv2', '', '4.10.0.83'),
        ERROR,
        'OpenCV up to 4.10.0.82 was compiled against NumPy 1, and cannot be imported',
        'pip install "numpy<2"',
        (('numpy', '1.26.4'),),
        'https://github.com/opencv/opencv/issues/25772',
    ),
)


class NotTogether(EnvironmentRule):
    """Versions that are known not to go together."""

    code = 'MG507'
    summary = 'Two packages are installed in versions that do not go together.'
    title = '{one} and {other} do not go together: {why}.'
    why = (
        'Binaries that were compiled against NumPy 1 fail with NumPy 2: torch below 2.3 cannot convert arrays, OpenCV '
        'up to 4.10.0.82 cannot be imported.'
    )
    example = Example(wrong='numpy 2.1 with torch 2.1', right='pip install "numpy<2"')
    limits = 'It knows these two pairs; others show when they are imported (MG506).'
    advice = (
        'Install `numpy<2`, or a newer version of the other package. If that does not fit the rest, make a new '
        'environment with versions that docs/stacks.md lists.'
    )

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for pair in PAIRS:
            if environment.is_from(*pair.module) and environment.is_from(*pair.other):
                one, other = (f'{name} {environment.version(name)}' for name in (pair.module[0], pair.other[0]))
                words, places = dict(one=one, other=other, why=pair.why), (line_of(pair.module[0]),)
                edit = Edit('Install NumPy 1.', SAFE, environment=pair.becomes, commands=(pair.install,))
                evidence = f'{one} next to {other} ({pair.source})'
                yield self.report(evidence, words, severity=pair.severity, edits=[edit], places=places)


class OlderThanTried(EnvironmentRule):
    """A version that mmguard does not support."""

    code = 'MG512'
    summary = 'torch or numpy is older than mmguard supports.'
    title = '{name} {version} is too old: mmguard needs {oldest} or newer.'
    why = "mmguard's tests were run with no version that is so old; pyproject.toml asks for newer ones."
    example = Example(wrong='torch 1.12.1', right='pip install "torch>=1.13.1"')
    limits = 'Newer versions than those that were tried are not reported.'
    advice = 'Install a newer one, or make a new environment: docs/stacks.md lists the versions that were tried.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        for name, versions in environment.tried.items():
            version = environment.version(name)
            if version and versions and is_within(version, '', versions[0]):
                command, becomes = f'pip install "{name}>={versions[0]}"', (name, versions[-1])
                edit = Edit(f'Install a newer {name}.', SAFE, environment=(becomes,), commands=(command,))
                words, places = dict(name=name, version=version, oldest=versions[0]), (f'mmguard with {name}',)
                yield self.report(f'{name} {version}', words, edits=[edit], places=places)


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
