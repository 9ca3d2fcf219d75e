from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts
from mmguard.findings.rules.labels.volumes.base import VolumeCause, rewrite_volumes
from mmguard.findings.volumes import FRACTIONS

#: So near to an integer a value was one, before it was scaled or cast.
NEAR = 0.01


class FractionalValues(VolumeCause):
    """Label files whose values are no integers."""

    code = 'MG186'
    shown_by = (FRACTIONS,)
    summary = 'Label files hold values that are no integers.'
    why = 'nnU-Net casts them down: 0.9998 becomes 0, and the class shrinks or is gone without a word.'
    advice = (
        'The labels were resampled, or augmented, with interpolation. Do it again with nearest neighbour, '
        '`sitk.Resample(label, image, sitk.Transform(), sitk.sitkNearestNeighbor)`; rounding would leave '
        'other classes along every border between two that are not neighbours in number.'
    )
    near = (
        'They lie within 0.01 of integers: write `np.rint(seg).astype(np.uint8)`, and save label files as integers '
        'from the start.'
    )
    scaled = (
        'The header scales what is stored (scl_slope, scl_inter). Write the label files anew as integers: '
        '`nib.save(nib.Nifti1Image(np.asanyarray(image.dataobj.get_unscaled()), image.affine), path)`, if what is '
        'stored are the labels.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self.advise(facts.labels) == self.near:
            yield rewrite_volumes(facts.labels, self.near, rounded=True)

    def advise(self, facts: LabelFacts) -> str:
        faults = self.faults(facts)
        if all('the header scales' in fault.detail for fault in faults):
            return self.scaled
        values = [value for fault in faults for value in fault.values]
        return self.near if values and all(map(_is_near, values)) else self.advice


def _is_near(value: str) -> bool:
    try:
        number = float(value)
        return abs(number - round(number)) <= NEAR
    except (ValueError, OverflowError):  # a log that somebody wrote to; inf
        return False
