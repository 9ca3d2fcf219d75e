"""Base of the rules about YOLO label files: each rests on a list of the rows or files that show it."""

from __future__ import annotations

from typing import ClassVar, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN
from mmguard.findings.rule import DataRule, Facts, Rule
from mmguard.findings.views import annotations_of, listing
from mmguard.findings.yolo import YoloFacts
from mmguard.text import quantity


def yolo_of(facts: LabelFacts) -> YoloFacts:
    return annotations_of(facts).yolo or YoloFacts()


def drop_rows(rule: Rule, facts: Facts, question: str = '') -> Iterator[Edit]:
    """Leave out the rows of a class that does not exist, where the labels are YOLO label files."""
    labels = facts.labels
    if labels is not None and annotations_of(labels).yolo is not None:
        question = question or f'May the objects of class {listing(sorted(labels.values))} go?'
        yield from rewrite(rule, facts, 'Leave these rows out.', ASKS, question, num_classes=labels.num_classes)


def subtract_one(rule: Rule, facts: Facts) -> Iterator[Edit]:
    """Take one from every class id, where the labels are YOLO label files."""
    labels = facts.labels
    if labels is not None and annotations_of(labels).yolo is not None:
        table = {label: label - 1 for label in sorted(labels.histogram) if label > 0}
        question = 'Is the first name that of label 1?'
        yield from rewrite(rule, facts, 'Subtract 1 from every class.', ASKS, question, label_map=table)


class YoloRule(DataRule):
    """A mistake that a list in ``YoloFacts`` shows."""

    kinds = ('instances',)
    needs = ('annotations',)
    shows_values = False
    #: The key of that list.
    fault: ClassVar[str]
    usual_certainty: ClassVar[str] = PROVEN

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return self.usual_certainty if self.count(facts) else None

    def count(self, facts: LabelFacts) -> int:
        return yolo_of(facts).counts.get(self.fault, 0)

    def evidence(self, facts: LabelFacts) -> str:
        return f'{self.count(facts):,} of {quantity(yolo_of(facts).rows, "row")}'

    def files(self, facts: LabelFacts) -> List[str]:
        return yolo_of(facts).faults.get(self.fault, [])
