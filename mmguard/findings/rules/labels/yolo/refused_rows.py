from __future__ import annotations

from typing import Dict, Iterator

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.views import MOST, listing, share
from mmguard.findings.yolo import ROWS
from mmguard.text import quantity


class RefusedRows(YoloRule):
    """Rows with other columns than their task has, or with something other than numbers."""

    code = 'MG163'
    fault = ROWS
    summary = 'Rows of YOLO labels cannot be read.'
    title = 'Rows of YOLO labels cannot be read: {reasons}.'
    why = (
        'Ultralytics leaves out the whole image, with all of its rows, and says so in one line among thousands; an id '
        'with decimals is cut off.'
    )
    advice = (
        'Rewrite these rows: `class x y width height` of a box, `class x1 y1 x2 y2 x3 y3 ...` of an outline, four '
        'points of an oriented box, and of keypoints a box and as many numbers as `kpt_shape` in data.yaml says.'
    )
    example = Example(wrong='0 0.5 0.5 0.1', right='0 0.5 0.5 0.1 0.1')
    limits = 'Of other orders of the columns it knows only pixels with the class last.'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None or share(self.count(facts.labels), yolo_of(facts.labels).rows) > MOST:
            return  # they are of another form, and not to go
        question = 'May these rows go, with their objects?'
        yield from rewrite(
            self, facts, 'Leave these rows out, cut what follows a box, and convert UTF-16 to UTF-8.', ASKS, question
        )

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'reasons': listing(yolo_of(facts).reasons, 4)}

    def evidence(self, facts: LabelFacts) -> str:
        parts = listing(f'{why} ({number:,})' for why, number in yolo_of(facts).reasons.items())
        return f'{super().evidence(facts)}: {parts}; {quantity(yolo_of(facts).left_out, "image")} left out'
