from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional

from mmguard.findings.box_formats import corrections, describe_format
from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, share
from mmguard.text.words import counted

#: Fewer boxes over the edge are rounding.
MANY = 0.01


class BoxesBeyondImage(DataRule):
    """Boxes that begin below 0 or end outside the image."""

    code = 'MG152'
    shows_values = False
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    severity = 'warning'
    summary = 'Boxes reach beyond the image: {which}.'
    why = (
        'A transform clips them, some to nothing: a box without area makes the loss inf or nan. Many of them mean '
        'another convention, or a wrong size of the image.'
    )
    advice = (
        '{minus}Corners beyond the size: is bbox x, y of the upper left corner (not the centre), width, height? Are '
        'width and height those of the image (swapped, turned by EXIF, another scale)? If all that is right: '
        '`x1, y1 = max(x1, 0), max(y1, 0)` and `x2, y2 = min(x2, width), min(y2, height)` clip them; drop what has no '
        'area then.'
    )

    otherwise = (
        'Draw one image with its boxes before you clip any: so many are no slips. The first two numbers may be the '
        'centre, or width and height not those of the image (swapped, turned by EXIF, another scale).'
    )
    minus_one = (
        "The corners count from 0 already, and the reader takes VOC's minus-one from them (as mmdet's does): add 1 to "
        'all corners, or take the minus-one out of a reader of your own. '
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
                yield replace(edit, notes=(*edit.notes, self.minus_one.strip()))
        else:
            boxes = found.negative_boxes + found.over_edge
            yield from corrections(self, facts, boxes, 'Clamp these boxes into their images.')

    def advise(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return self.advice if self._shows_minus_one(found) else describe_format(found) or self.advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        found = annotations_of(facts)
        texts: List[str] = []
        if found.negative_boxes:
            texts.append(f'{counted(found.negative_boxes, "box")} with a corner below 0')
        if found.over_edge:
            texts.append(f'{counted(found.over_edge, "box")} over its edge')
        return {'which': ', '.join(texts), 'minus': self.minus_one if self._shows_minus_one(found) else ''}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return f'{self.words(facts)["which"]}, of {counted(found.annotations, "annotation")}'

    def files(self, facts: LabelFacts) -> List[str]:
        examples = annotations_of(facts).box_examples
        return [*examples.get('negative', []), *examples.get('over_edge', [])]

    def _shows_minus_one(self, found: AnnotationFacts) -> bool:
        """Whether -1 is all that is seen below 0, in a format from which 1 is subtracted."""
        return found.format == 'voc' and bool(found.negative_boxes) and not found.below_minus_one
