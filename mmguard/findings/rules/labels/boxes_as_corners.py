from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, share
from mmguard.text import quantity

#: A few slips may be neither; a box of a pixel at the origin may occur.
NEARLY_ALL, MOST = 0.98, 0.9
#: Of good boxes some lie near the upper left, where width and height exceed x and y; of a few boxes perhaps all.
ENOUGH, SOME = 8, 3

#: Two corners, x first or y (TensorFlow). Where both fit, on square images, the first is meant.
ORDERS = {'corners': 'x1, y1, x2, y2', 'rows': 'y1, x1, y2, x2'}
FRACTIONS = 'fractions'


class BoxesInAnotherForm(DataRule):
    """Two corners where COCO has x, y, width, height; boxes divided by the size of their image."""

    code = 'MG172'
    aliases = ('MG173',)
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'The boxes are written in another form: as two corners, or as fractions of the image.'
    title = 'bbox seems to hold two corners ({corners}); COCO wants x, y, width, height.'
    title_fractions = 'The boxes are fractions of the image, in [0, 1], but {format} stores pixels.'
    why = (
        'Corners make every box too large: training runs, and learns boxes that are all wrong. Fractions make each '
        'smaller than a pixel: mmdet leaves them out silently, elsewhere the loss is inf or nan.'
    )
    example = Example(wrong='"bbox": [100, 80, 300, 240]', right='"bbox": [100, 80, 200, 160]')
    limits = (
        'Fewer than 8 boxes are not judged as corners. On square images it cannot tell x1, y1, x2, y2 from y1, x1, y2, '
        'x2, and of fractions not whether the first two numbers are a corner or the centre.'
    )
    advice = (
        'Draw one image with its boxes before you change any. Corners: `{corners} = ann["bbox"]; ann["bbox"] = [x1, '
        'y1, x2 - x1, y2 - y1]`, and `ann["area"]` with them. Fractions: multiply by width and height of the image; of '
        'a centre, as in YOLO, take half the size off first. Do not clip boxes at the edge of the image: that hides it.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._form(facts) else None

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        follow = super().find_superseded(facts)
        return follow if self._form(facts) == FRACTIONS else [one for one in follow if one not in ('MG130', 'MG174')]

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_fractions if self._form(facts) == FRACTIONS else self.title

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        form = '' if facts.labels is None else self._form(facts.labels)
        if form == FRACTIONS and facts.labels is not None:
            is_sure = annotations_of(facts.labels).counts_from_one
            corner = '' if is_sure else 'Are the first two numbers the upper left corner (not the centre, as in YOLO)?'
            title = 'Multiply the boxes by width and height of the image.'
            yield from rewrite(self, facts, title, SAFE if is_sure else ASKS, corner, boxes=FRACTIONS)
        elif form == 'corners':
            title, question = (
                'Convert the boxes to x, y, width, height.',
                f'Are they {ORDERS[form]} (compare one box with its image)?',
            )
            yield from rewrite(self, facts, title, ASKS, question, boxes=form)

    def evidence(self, facts: LabelFacts) -> str:
        found, form = annotations_of(facts), self._form(facts)
        if form == FRACTIONS:
            return f'{found.inside_unit:,} of {quantity(found.annotations, "box")}'
        return (
            f'{found.inside_as.get(form, 0):,} of {quantity(found.annotations, "box")} lie inside their '
            f'image when read as corners; as x, y, width, height {found.over_edge:,} end outside'
        )

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        corners = ORDERS.get(self._form(facts), ORDERS['corners'])
        return {'corners': corners, 'format': annotations_of(facts).format.upper()}

    def files(self, facts: LabelFacts) -> List[str]:
        return [] if self._form(facts) == FRACTIONS else annotations_of(facts).box_examples.get('over_edge', [])

    def _form(self, facts: LabelFacts) -> str:
        """Return how nearly all boxes are written, if not as they should be; empty: not known."""
        found = annotations_of(facts)
        if found.inside_unit >= SOME and share(found.inside_unit, found.annotations) >= MOST:
            return FRACTIONS
        is_outside = found.over_edge or found.box_examples.get('box_outside')
        if found.annotations < ENOUGH or not is_outside:
            return ''
        fit = [name for name in ORDERS if share(found.inside_as.get(name, 0), found.annotations) >= NEARLY_ALL]
        return max(fit, key=lambda name: found.inside_as[name], default='')
