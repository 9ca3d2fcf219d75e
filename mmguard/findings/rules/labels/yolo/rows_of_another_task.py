from __future__ import annotations

from typing import Dict, Iterator

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.yolo import BOXES, OTHER_TASK


class RowsOfAnotherTask(YoloRule):
    """Outlines among boxes, or boxes among outlines."""

    code = 'MG165'
    fault = OTHER_TASK
    certainty = 0.88
    summary = 'Most rows are {task}, others are {other}.'
    why = (
        'In a label file with an outline ultralytics takes every row for one: the centre and the size of a box become '
        'two points, and what is trained lies elsewhere. Where both occur in a set, it drops all outlines.'
    )
    advice = (
        'Train on one kind: make boxes of outlines (`mmguard fix ... --boxes around`), or draw the outlines of these '
        'objects, too.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            question = 'Is it a detector that is trained, which needs no outlines?'
            yield from rewrite(self, facts, 'makes of each outline the box around it', ASKS, question, boxes='around')

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        task = yolo_of(facts).task
        return {'task': task, 'other': 'outlines' if task == BOXES else BOXES}
