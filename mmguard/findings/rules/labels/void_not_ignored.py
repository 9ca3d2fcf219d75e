from __future__ import annotations

from typing import Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.usual_edits import set_ignore_index
from mmguard.findings.views import VOID, trained


class VoidNotIgnored(DataRule):
    """255, the usual ignore value, under another ``ignore_index``."""

    code = 'MG104'
    summary = '255, the usual void value, is not ignored.'
    title = '255 is the usual value of ignored pixels and of padding, but ignore_index is {ignore_index}.'
    why = 'Every unlabelled or padded pixel is out of range for the loss: a device-side assert.'
    example = Example(
        wrong='ignore_index=-100, labels 0..10 and 255',
        right='ignore_index=255',
    )
    limits = '255 may be a class that was drawn in white.'
    advice = (
        'Look at one of the files. If 255 is void (unlabelled), use one ignored value everywhere: `ignore_index=255` '
        'in the head, the losses, the metric and GuardSegLabels, `seg_pad_val=255` in the data preprocessor. If it is '
        'a class, map it to that: `label_map={{255: CLASS}}`.'
    )
    pytorch = (
        'If 255 is void, or the fill value of padding or of a rotation: ignore_index=255, the same in loss, metric and '
        'transforms. If it is a class, map it to its index.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        labels = facts.labels
        if labels is None:
            return
        # Where a class never occurs 255 may be it.
        complete = set(range(labels.num_classes)) <= set(trained(labels))
        question = '' if complete else 'Is 255 your void (unlabelled) value?'
        yield set_ignore_index(facts, VOID, SAFE if complete else ASKS, question)

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if set(facts.values) == {255} and facts.num_classes > 2 else None
