from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


class BinaryMask(Cause):
    """A mask of 0 and 255, drawn to be looked at."""

    code = 'MG103'
    summary = 'These look like 0/255 masks: the foreground is stored as 255, not as class 1.'
    advice = (
        'Write label_map={{255: 1}} in GuardSegLabels, or save the masks with 0 and 1. Do not ignore 255: it is your '
        'foreground.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.95 if set(facts.values) == {255} and facts.num_classes <= 2 else 0.0
