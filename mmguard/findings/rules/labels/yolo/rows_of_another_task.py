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
    title = '{others} of {rows} rows are {other}, the rest {task}.'
    why = (
        'In a label file with an outline ultralytics takes every row for one: the centre and the size of a box become '
        'two points, so the trained box is elsewhere. If another file holds only boxes, it removes all outlines of '
        'the set ("only boxes will be used and all segments will be removed"): segmentation has no mask to learn.'
    )
    example = Example(wrong='0 0.5 0.5 0.1 0.1 among outlines', right='0 0.45 0.45 0.55 0.45 0.55 0.55 0.45 0.55')
    limits = 'Sets of keypoints are not judged. Which task is trained is not known: most rows do not decide it.'
    advice = (
        'Which task do you train? Segmentation, or oriented boxes: draw the objects that are boxes as outlines, too, '
        'in every file. Detection: write the box around each outline (`(min(xs) + max(xs)) / 2`, `(min(ys) + max(ys)) '
        '/ 2`, `max(xs) - min(xs)`, `max(ys) - min(ys)`), at least in files that hold both.'
    )

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        found = yolo_of(facts)
        numbers = {'others': f'{self.count(facts):,}', 'rows': f'{found.rows:,}'}
        return {'task': found.task, 'other': 'outlines' if found.task == BOXES else BOXES, **numbers}
