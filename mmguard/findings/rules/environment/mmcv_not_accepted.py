from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts, is_within, line_of
from mmguard.findings.finding import Finding
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
