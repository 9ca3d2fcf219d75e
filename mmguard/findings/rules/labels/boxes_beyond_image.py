from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import corrections, describe_format, rewrite
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, share
from mmguard.text import quantity

#: Fewer boxes over the edge are rounding.
MANY = 0.01
#: Note of the edit of corners at -1.
_COUNTED_FROM_ZERO = 'If the corners count from 0 already, add 1 to all: of VOC the reader subtracts 1, as mmdet does.'


class BoxesBeyondImage(DataRule):
    """Boxes that begin below 0 or end outside the image."""

    code = 'MG152'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    severity = 'warning'
    summary = 'Boxes reach beyond the image.'
    title = 'Boxes reach beyond the image: {which}.'
    why = (
        'A transform clips them, some to nothing: a box without area makes the loss inf or nan. Many of them mean '
        'another convention, or a wrong size of the image.'
    )
    example = Example(wrong='"bbox": [600, 20, 80, 40]  # width 640', right='"bbox": [600, 20, 40, 40]')
    limits = 'Fewer than 1 % of the boxes over the edge are taken for rounding.'
    advice = (
        'Draw one image with its boxes before you change any. If they are drawn right, clip them and drop those '
        'without area then; a VOC corner at -1 counts from 0 already: add 1 to all corners. If they are drawn wrong, '
        'convert them (from y1, x1, y2, x2, or centre and size), or correct the size of the image in the annotations '
        '(swapped, turned by EXIF, another scale).'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        return LIKELY if found.negative_boxes or share(found.over_edge, found.annotations) >= MANY else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        found = annotations_of(facts.labels)
        if self._shows_minus_one(found):
            for edit in rewrite(self, facts, 'Move these boxes to the edge of the image.', SAFE):
                yield replace(edit, notes=(*edit.notes, _COUNTED_FROM_ZERO))
        else:
            boxes = found.negative_boxes + found.over_edge
            yield from corrections(self, facts, boxes, 'Clamp these boxes into their images.')

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        found = annotations_of(facts)
        texts: List[str] = []
        if found.negative_boxes:
            texts.append(f'{quantity(found.negative_boxes, "box")} with a corner below 0')
        if found.over_edge:
            texts.append(f'{quantity(found.over_edge, "box")} over its edge')
        return {'which': ', '.join(texts)}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        seen = f'{self.describe(facts)["which"]}, of {quantity(found.annotations, "annotation")}'
        return '; '.join(filter(None, (seen, describe_format(found))))

    def files(self, facts: LabelFacts) -> List[str]:
        examples = annotations_of(facts).box_examples
        return [*examples.get('negative', []), *examples.get('over_edge', [])]

    def _shows_minus_one(self, found: AnnotationFacts) -> bool:
        """Return True if -1 is all that is seen below 0, in a format from which 1 is subtracted."""
        return found.counts_from_one and bool(found.negative_boxes) and not found.below_minus_one
