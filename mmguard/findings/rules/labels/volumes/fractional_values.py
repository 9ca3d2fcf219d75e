from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import Edit
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts
from mmguard.findings.rules.labels.volumes.base import VolumeCause, rewrite_volumes
from mmguard.findings.volumes import FRACTIONS

#: So near to an integer a value was one, before it was scaled or cast.
NEAR = 0.01


class FractionalValues(VolumeCause):
    """Label files whose values are not integers."""

    code = 'MG186'
    shown_by = (FRACTIONS,)
    summary = 'Label files hold values that are not integers.'
    why = 'nnU-Net casts them down: 0.9998 becomes 0, and the class shrinks or is gone without a message.'
    example = Example(
        wrong='sitk.Resample(label, image, sitk.Transform(), sitk.sitkLinear)',
        right='sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)',
    )
    limits = 'It does not know what the labels were before they were resampled.'
    advice = (
        'If the header scales what is stored (scl_slope, scl_inter), save the stored values: '
        '`image.dataobj.get_unscaled()`. If all values are within 0.01 of integers, round them, `np.rint(seg)`. If '
        'not, the labels were interpolated: resample the originals again with `sitk.sitkNearestNeighbor`; rounding '
        'would draw other classes along borders.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        faults = [] if facts.labels is None else self.faults(facts.labels)
        values = [value for fault in faults for value in fault.values]
        is_scaled = all('the header scales' in fault.detail for fault in faults)
        if facts.labels is not None and values and not is_scaled and all(map(_is_near, values)):
            title, lines = 'Round the labels, and save label files as integers.', ('np.rint(seg).astype(np.uint8)',)
            yield rewrite_volumes(facts.labels, title, lines=lines, rounded=True)


def _is_near(value: str) -> bool:
    try:
        number = float(value)
        return abs(number - round(number)) <= NEAR
    except (ValueError, OverflowError):  # a log that somebody wrote to; inf
        return False
