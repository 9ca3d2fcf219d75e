from __future__ import annotations

from typing import Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN
from mmguard.findings.rule import DataRule


class NegativeLabels(DataRule):
    """Labels below 0."""

    code = 'MG105'
    kinds = ('pixels', 'instances')
    summary = 'Labels below 0 ({values}): an ignored value of another framework, or 1 subtracted twice.'
    why = 'A negative label is out of range in a softmax loss, and counts from the end where it indexes a table.'
    advice = (
        'If -1 means ignored, map it: `label_map={{-1: {void}}}`. If the labels were shifted by hand, drop that '
        'shift or reduce_zero_label: only one of them may subtract.'
    )
    instances = (
        'Labels are 0..{last}. If 1 was subtracted from ids that count from 0 already, drop that shift. A label -1 for '
        '"nothing" is no object: leave it out with `dict(type=\'GuardInstanceLabels\', num_classes={num_classes}, '
        "on_invalid='drop')`."
    )

    otherwise = (
        'Look where they come from: a label map (of the data set, or of a guard) that leads below 0, or a transform '
        'that subtracts 1 from labels that count from 0.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if all(value < 0 for value in facts.values) else None

    def advise(self, facts: LabelFacts) -> str:
        return self.instances if facts.kind == 'instances' else self.advice
