from __future__ import annotations

from typing import Iterator

from mmguard.config.parts import transforms
from mmguard.config.read import ReadConfig
from mmguard.findings.finding import Finding
from mmguard.findings.rule import ConfigRule, Example
from mmguard.findings.usual_edits import propose

#: Arguments that say how masks are resized; cv2.INTER_NEAREST is 0, cv2.INTER_NEAREST_EXACT 6.
ARGUMENTS = ('mask_interpolation', 'seg_interpolation')
NEAREST = (0, 6, 'nearest', 'nearest-exact', 'INTER_NEAREST', 'cv2.INTER_NEAREST')


class MaskInterpolation(ConfigRule):
    """An interpolation between labels, which are names and not quantities."""

    code = 'MG213'
    summary = 'Label maps are resized with an interpolation that is not nearest.'
    title = '{transform} mixes neighbouring labels into values that were never annotated.'
    why = (
        'Between label 3 and label 9 other interpolations write 4, 5, 6, ...: classes that were never annotated, along '
        'every border. Between a class and 255 they write labels that no class has.'
    )
    example = Example(wrong="dict(type='Albu', ..., mask_interpolation=1)", right='mask_interpolation=0')
    limits = 'It reads the arguments mask_interpolation and seg_interpolation; other names are not known.'
    advice = "Resize label maps with nearest: 0 (cv2.INTER_NEAREST), or 'nearest' where the transform takes a name."

    def look(self, config: ReadConfig) -> Iterator[Finding]:
        for transform in transforms(config):
            for argument in ARGUMENTS:
                place, value = transform.at(argument), transform.config.get(argument)
                if value is not None and value not in NEAREST:
                    nearest = 0 if isinstance(value, int) else 'nearest'  # cv2 takes a number
                    edit = propose('Resize label maps with nearest.', (place, nearest))
                    yield self.report_at(place, value, dict(transform=transform.name), edits=[edit])
