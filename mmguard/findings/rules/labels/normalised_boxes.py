from __future__ import annotations

from typing import Dict, Iterator, Optional

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import PROVEN, Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, share
from mmguard.text.words import counted

#: A box of a pixel at the origin may occur; a set of them not.
NEARLY_ALL, ENOUGH = 0.9, 3


class NormalisedBoxes(DataRule):
    """Boxes divided by the size of their image, as YOLO's text files have them."""

    code = 'MG173'
    shows_values = False
    kinds = ('instances',)
    needs = ('annotations',)
    summary = 'The boxes are fractions of the image, all in [0, 1]; {format} wants pixels.'
    why = 'Each is smaller than a pixel: mmdet leaves such boxes out without a word, elsewhere the loss is inf or nan.'
    advice = (
        'Multiply by the size of the image. Of x, y, width, height: '
        '`x, y, w, h = x * width, y * height, w * width, h * height`. YOLO stores the centre, so there '
        '`bbox = [(x - w / 2) * width, (y - h / 2) * height, w * width, h * height]`.'
    )
    voc = (
        'Multiply by the size of the image: `xmin, xmax = xmin * width, xmax * width` and '
        '`ymin, ymax = ymin * height, ymax * height`, rounded; count from 1, as VOC does.'
    )

    otherwise = (
        'Multiplying by width and height of the images does not put all boxes into their images. YOLO stores the '
        'centre: is it `bbox = [(x - w / 2) * width, (y - h / 2) * height, w * width, h * height]`? Draw one image '
        'with its boxes, and see whether the file has the size of every image.'
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
        corner = 'Do the first two numbers give the upper left corner (not the centre, as in the files of YOLO)?'
        yield from rewrite(self, facts, title, ASKS, corner, boxes='fractions')

    def advise(self, facts: LabelFacts) -> str:
        return self.voc if annotations_of(facts).format == 'voc' else self.advice

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        return {'format': annotations_of(facts).format.upper()}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return f'{found.inside_unit:,} of {counted(found.annotations, "box")}'
