from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


class NegativeLabels(Cause):
    """Labels below 0."""

    code = 'MG105'
    summary = 'Labels below 0 ({values}): an ignored value of another framework, or 1 subtracted twice.'
    advice = (
        'If -1 means ignored, map it: label_map={{-1: {ignore_index}}}. If the labels were shifted by hand, drop that '
        'shift or reduce_zero_label: only one of them may subtract.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        return 0.9 if all(value < 0 for value in facts.values) else 0.0
