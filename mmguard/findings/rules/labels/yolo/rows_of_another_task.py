from __future__ import annotations

from typing import Dict

from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Example
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.yolo import BOXES, OTHER_TASK


class RowsOfAnotherTask(YoloRule):
    """Outlines among boxes, or boxes among outlines."""

    code = 'MG165'
    fault = OTHER_TASK
    summary = 'Boxes and outlines are in one set of YOLO labels.'
    title = 'Most rows are {task}, others are {other}.'
    why = (
        'In a label file with an outline ultralytics takes every row for one: the centre and the size of a box become '
        'two points, so the trained box is elsewhere. Where both occur in a set, it drops all outlines.'
    )
    example = Example(wrong='0 0.5 0.5 0.1 0.1 among outlines', right='0 0.45 0.45 0.55 0.45 0.55 0.55 0.45 0.55')
    limits = 'Sets of keypoints are not judged.'
    advice = (
        'Train on one kind: write the box around each outline (`(min(xs) + max(xs)) / 2`, `(min(ys) + max(ys)) / 2`, '
        '`max(xs) - min(xs)`, `max(ys) - min(ys)`), or draw the outlines of these objects, too.'
    )

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        task = yolo_of(facts).task
        return {'task': task, 'other': 'outlines' if task == BOXES else BOXES}
