from __future__ import annotations

from typing import Iterator

from mmguard.findings.environment import EnvironmentFacts, is_within, line_of
from mmguard.findings.finding import Finding
from mmguard.findings.installing import limits_in_words, mmcv_again
from mmguard.findings.rule import EnvironmentRule
from mmguard.text.words import plural

#: The first mmcv of mmengine.
_FIRST = '2.0.0dev0'


class MmcvNotAccepted(EnvironmentRule):
    """A framework that refuses the mmcv that is there."""

    code = 'MG508'
    summary = 'A framework does not accept the version of mmcv that is installed.'
    why = 'mmseg and mmdet look at the version when they are imported, and end with an AssertionError (MMCV==...).'
    advice = 'Install an mmcv that they accept, such as `mim install "mmcv>=2.0.0rc4,<2.2.0"`.'

    def look(self, environment: EnvironmentFacts) -> Iterator[Finding]:
        version = environment.version('mmcv')
        refusing = {
            name: limits for name, limits in environment.accepts.items() if version and not is_within(version, *limits)
        }
        is_old = bool(version) and not is_within(version, _FIRST)
        if refusing or is_old:
            said = [f'{name} accepts {limits_in_words(limits)}' for name, limits in refusing.items()]
            broken = [line_of(name) for name in refusing if 'MMCV' in environment.errors.get(name, '')]
            yield self.found(
                'mmcv 1 belongs to mmseg 0.x and mmdet 2.x.'
                if is_old
                else f'{" and ".join(refusing)} {plural(len(refusing), "accepts", "accept")} no mmcv {version}.',
                '; '.join([f'mmcv {version}', *said]),
                edits=[mmcv_again(environment)],
                places=(*[line_of('mmcv')] * is_old, *(f'mmcv for {name}' for name in refusing), *broken),
            )
