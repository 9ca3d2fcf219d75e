from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause

#: More distinct invalid values than this are no slip and no forgotten class.
MANY = 16


class GrayLevels(Cause):
    """Many values all over the range."""

    code = 'MG106'
    summary = 'Many different invalid values ({values}, ...): colours, gray levels or interpolated labels.'
    advice = (
        'Label files must hold class indices: save single-channel PNG (never JPEG), decode colours to indices, resize '
        'label maps with nearest only, and do not read palette PNGs as colours.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.85 if len(facts.values) > MANY else 0.0
