from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import transforms
from mmguard.config.read import ReadConfig
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule

#: Arguments that say how masks are resized; cv2.INTER_NEAREST is 0, cv2.INTER_NEAREST_EXACT 6.
ARGUMENTS = ('mask_interpolation', 'seg_interpolation')
NEAREST = (0, 6, 'nearest', 'nearest-exact', 'INTER_NEAREST', 'cv2.INTER_NEAREST')


class MaskInterpolation(ConfigRule):
    """Labels are names, not quantities."""

    code = 'MG213'
    summary = 'Label maps are resized with an interpolation that is not nearest.'
    why = (
        'Between label 3 and label 9 other interpolations write 4, 5, 6, ...: classes that nobody labelled, along '
        'every border. Between a class and 255 they write labels that no class has.'
    )
    advice = 'Write mask_interpolation=0 (cv2.INTER_NEAREST).'

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for transform in transforms(config):
            for argument in ARGUMENTS:
                value = transform.config.get(argument)
                if value is not None and value not in NEAREST:
                    yield self.at(
                        transform.at(argument),
                        value,
                        f'{transform.name} mixes neighbouring labels into values that were never annotated.',
                        edits=[_nearest(transform.at(argument), argument, isinstance(value, int))],
                    )


def _nearest(place: str, argument: str, is_number: bool) -> Edit:
    shown = '0 (cv2.INTER_NEAREST)' if is_number else repr('nearest')
    return Edit(f'Write {argument}={shown}.', SAFE, '', ((place, 0 if is_number else 'nearest'),))
