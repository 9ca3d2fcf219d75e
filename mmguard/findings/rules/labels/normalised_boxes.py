from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, share
from mmguard.text import quantity

#: A box of a pixel at the origin may occur; a set of them not.
NEARLY_ALL, ENOUGH = 0.9, 3


class NormalisedBoxes(DataRule):
    """Boxes divided by the size of their image, as YOLO's text files have them."""

    code = 'MG173'
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'Boxes are fractions of the image where pixels are expected.'
    title = 'The boxes are fractions of the image, in [0, 1], but {format} stores pixels.'
    why = 'Each is smaller than a pixel: mmdet leaves such boxes out silently, elsewhere the loss is inf or nan.'
    example = Example(
        wrong='"bbox": [0.1, 0.2, 0.3, 0.4]',
        right='"bbox": [64, 96, 192, 192] in an image of 640 x 480',
    )
    limits = 'It does not know whether the first two numbers are a corner or the centre.'
    advice = (
        'Draw one image with its boxes. If the first two numbers are the upper left corner, multiply x and width by '
        'the width of the image, y and height by its height. If they are the centre, as in YOLO: `bbox = [(x - w / 2) '
        '* width, (y - h / 2) * height, w * width, h * height]`. VOC stores two corners in pixels, counted from 1.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        enough = found.inside_unit >= ENOUGH and share(found.inside_unit, found.annotations) >= NEARLY_ALL
        return PROVEN if enough else None

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        title = 'Multiply the boxes by width and height of the image.'
        if annotations_of(facts.labels).format == 'voc':
            yield from rewrite(self, facts, title, SAFE, boxes='fractions')
            return
        corner = 'Are the first two numbers the upper left corner (not the centre, as in YOLO)?'
        yield from rewrite(self, facts, title, ASKS, corner, boxes='fractions')

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'format': annotations_of(facts).format.upper()}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return f'{found.inside_unit:,} of {quantity(found.annotations, "box")}'
