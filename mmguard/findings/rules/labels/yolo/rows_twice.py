from __future__ import annotations

from typing import Iterator

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts
from mmguard.findings.rules.labels.yolo.base import YoloRule
from mmguard.findings.yolo import TWICE


class RowsTwice(YoloRule):
    """The same row a second time in a label file."""

    code = 'MG166'
    fault = TWICE
    severity = 'warning'
    certainty = 0.6
    summary = 'Label files hold the same row twice.'
    why = (
        'Ultralytics leaves out the second; others train on both, and count the second as missed. Often a label file '
        'was appended to instead of written anew.'
    )
    advice = 'Write each object once: `sort -u` of a label file does it.'

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        yield from rewrite(self, facts, 'leaves the second out', SAFE)
