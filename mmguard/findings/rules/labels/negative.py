from __future__ import annotations

from typing import Optional

from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN
from mmguard.findings.rule import DataRule, Example


class NegativeLabels(DataRule):
    """Labels below 0."""

    code = 'MG105'
    kinds = ('pixels', 'instances')
    summary = 'Labels below 0.'
    title = 'Labels below 0: {values}.'
    why = 'A negative label is out of range in a softmax loss, and counts from the end where it indexes a table.'
    example = Example(
        wrong='label - 1 in a transform of your own, reduce_zero_label=True in the data set',
        right='reduce_zero_label=True, without the transform',
    )
    limits = 'It cannot tell an ignored value from a label that was shifted twice.'
    advice = (
        'Find what makes them: an ignored value of another framework, a label_map that leads below 0, or 1 subtracted '
        'from labels that count from 0. Keep only one shift. If -1 marks ignored pixels, map it: `label_map={{-1: '
        '{void}}}`. A box with such a label is not an object: delete it.'
    )
    pytorch = (
        'Find what makes them. If 1 is subtracted from ids that count from 0, do not subtract it. If such pixels are '
        'ignored, pass one ignore_index to loss, metric and transforms, and map {values} to it if another value is '
        'ignored already. A detector has no ignored label: delete such boxes.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if all(value < 0 for value in facts.values) else None
