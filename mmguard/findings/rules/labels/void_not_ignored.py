from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.usual_edits import set_ignore_index
from mmguard.findings.views import VOID, trained


class VoidNotIgnored(DataRule):
    """255, the usual ignore value, under another ``ignore_index``."""

    code = 'MG104'
    summary = '255 is the usual value of ignored pixels and of padding, but ignore_index is {ignore_index}.'
    why = 'Every unlabelled or padded pixel is out of range for the loss: a device-side assert.'
    advice = (
        'Use one ignored value everywhere: `ignore_index=255` in the head, in the losses, in the metric and in '
        'GuardSegLabels, `seg_pad_val=255` in the data preprocessor; map another void value to it with label_map.'
    )

    otherwise = (
        'Look at one of the files: is 255 what nobody labelled, or a class? Head, losses, metric and padding must then '
        'agree on one ignored label.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        # Where a class never occurs 255 may be it.
        complete = set(range(labels.num_classes)) <= set(trained(labels))
        question = '' if complete else 'Is 255 what nobody labelled, and no class?'
        yield set_ignore_index(facts, VOID, SAFE if complete else ASKS, question)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if set(facts.values) == {255} and facts.num_classes > 2 else None
