from __future__ import annotations

from typing import Dict, Iterator, List

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, share
from mmguard.words import counted

#: A few slips may be neither.
NEARLY_ALL = 0.98
#: Of good boxes some lie near the upper left, where width and height exceed x and y; of a few boxes perhaps all.
ENOUGH = 8


class BoxesAsCorners(DataRule):
    """x1, y1, x2, y2 where COCO has x, y, width, height."""

    code = 'MG172'
    explains = ('MG109', 'MG146', 'MG152')
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'bbox seems to hold two corners (x1, y1, x2, y2); COCO wants x, y, width, height.'
    why = 'Every box is too large and reaches beyond its image. Training runs, and learns boxes that are all wrong.'
    advice = (
        'Convert them: `x1, y1, x2, y2 = ann["bbox"]; ann["bbox"] = [x1, y1, x2 - x1, y2 - y1]`, and '
        '`ann["area"] = (x2 - x1) * (y2 - y1)`. Do not clip the boxes at the edge of the image: that hides it.'
    )

    otherwise = (
        'Draw one image with its boxes and see how they are written before you change any: converting them as they '
        'are here leaves others that cannot be used.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        found = annotations_of(facts)
        if found.format != 'coco' or found.annotations < ENOUGH:
            return 0.0
        # Above the boxes outside of their images, which it explains.
        if not found.over_edge and not found.box_examples.get('box_outside'):
            return 0.0
        return 0.96 if share(self._fitting(facts), found.annotations) >= NEARLY_ALL else 0.0

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        question = 'Are they x1, y1, x2, y2 (compare one box with its image)?'
        yield from rewrite(self, facts, 'makes x1, y1, x2 - x1, y2 - y1 of them', ASKS, question, boxes='corners')

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return (
            f'{self._fitting(facts):,} of {counted(found.annotations, "box")} lie inside their image when '
            f'read as corners; as x, y, width, height {found.over_edge:,} end outside'
        )

    def _fitting(self, facts: LabelFacts) -> int:
        return annotations_of(facts).inside_as.get('corners', 0)

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).box_examples.get('over_edge', [])
