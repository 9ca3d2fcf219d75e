from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause

#: More distinct invalid values than this are no slip and no forgotten class.
MANY = 16


class GrayLevels(Cause):
    """Many values all over the range."""

    code = 'MG106'
    summary = 'Many different invalid values ({values}, ...): colours, gray levels or interpolated labels.'
    why = 'The files are pictures of the labels, not labels: a value says how bright a class is drawn, not which it is.'
    advice = (
        'Label files must hold class indices: save single-channel PNG (never JPEG), decode colours to indices, resize '
        'label maps with nearest only, and do not read palette PNGs as colours.'
    )
    two = (
        'For two classes threshold the masks and save them as single-channel PNG: '
        '`Image.fromarray((mask > 127).astype(np.uint8)).save(path)`. Never as JPEG, never resized but with nearest.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.85 if len(facts.values) > MANY else 0.0

    def advise(self, facts: LabelFacts) -> str:
        return self.two if facts.num_classes <= 2 else self.advice
