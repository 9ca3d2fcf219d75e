from __future__ import annotations

from typing import Dict

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.yolo import BOXES, OTHER_TASK


class RowsOfAnotherTask(YoloRule):
    """Outlines among boxes, or boxes among outlines."""

    code = 'MG165'
    fault = OTHER_TASK
    summary = 'Most rows are {task}, others are {other}.'
    why = (
        'In a label file with an outline ultralytics takes every row for one: the centre and the size of a box become '
        'two points, and what is trained lies elsewhere. Where both occur in a set, it drops all outlines.'
    )
    advice = (
        'Train on one kind: write the box around each outline (`(min(xs) + max(xs)) / 2`, `(min(ys) + max(ys)) / 2`, '
        '`max(xs) - min(xs)`, `max(ys) - min(ys)`), or draw the outlines of these objects, too.'
    )

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        task = yolo_of(facts).task
        return {'task': task, 'other': 'outlines' if task == BOXES else BOXES}
