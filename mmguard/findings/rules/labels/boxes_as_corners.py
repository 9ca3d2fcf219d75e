from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import ASKS, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, share
from mmguard.text import quantity

#: A few slips may be neither.
NEARLY_ALL = 0.98
#: Of good boxes some lie near the upper left, where width and height exceed x and y; of a few boxes perhaps all.
ENOUGH = 8

#: Two corners, x first or y (TensorFlow). Where both fit, on square images, the first is meant.
ORDERS = {'corners': 'x1, y1, x2, y2', 'rows': 'y1, x1, y2, x2'}


class BoxesAsCorners(DataRule):
    """x1, y1, x2, y2 where COCO has x, y, width, height."""

    code = 'MG172'
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'bbox seems to hold two corners; COCO wants x, y, width, height.'
    title = 'bbox seems to hold two corners ({corners}); COCO wants x, y, width, height.'
    why = 'Every box is too large and reaches beyond its image. Training runs, and learns boxes that are all wrong.'
    example = Example(wrong='"bbox": [100, 80, 300, 240]', right='"bbox": [100, 80, 200, 160]')
    limits = 'Fewer than 8 boxes are not judged. On square images it cannot tell x1, y1, x2, y2 from y1, x1, y2, x2.'
    advice = (
        'Draw one image with its boxes before you change any. Convert those that are corners: `{corners} = '
        'ann["bbox"]; ann["bbox"] = [x1, y1, x2 - x1, y2 - y1]`, and `ann["area"] = (x2 - x1) * (y2 - y1)`; correct '
        'what no format explains. Do not clip boxes at the edge of the image: that hides it.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        if found.format != 'coco' or found.annotations < ENOUGH:
            return None
        if not found.over_edge and not found.box_examples.get('box_outside'):
            return None
        return PROVEN if self._order(facts) else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None and self._order(facts.labels) == 'corners':
            question = f'Are they {ORDERS["corners"]} (compare one box with its image)?'
            yield from rewrite(
                self, facts, 'Convert the boxes to x, y, width, height.', ASKS, question, boxes='corners'
            )

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return (
            f'{found.inside_as.get(self._order(facts), 0):,} of {quantity(found.annotations, "box")} lie inside their '
            f'image when read as corners; as x, y, width, height {found.over_edge:,} end outside'
        )

    def _order(self, facts: LabelFacts) -> str:
        """Return the order of the numbers by which nearly all boxes are inside their images; empty: none."""
        found = annotations_of(facts)
        fit = [name for name in ORDERS if share(found.inside_as.get(name, 0), found.annotations) >= NEARLY_ALL]
        return max(fit, key=lambda name: found.inside_as[name], default='')

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'corners': ORDERS[self._order(facts) or 'corners']}

    def files(self, facts: LabelFacts) -> List[str]:
        return annotations_of(facts).box_examples.get('over_edge', [])
