from __future__ import annotations

from typing import Iterator, Sequence

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Example, Facts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.views import share
from mmguard.findings.yolo import BEYOND
from mmguard.text import quantity

#: Share of the rows from which on pixels are the convention of the set, not a slip.
NEARLY_ALL = 0.9


class NoFractions(YoloRule):
    """Coordinates outside of [0, 1]: pixels, or slips."""

    code = 'MG164'
    fault = BEYOND
    summary = 'Coordinates are not fractions of the image: they are outside of [0, 1].'
    title_pixels = 'The coordinates are pixels; YOLO wants fractions of the image, all in [0, 1].'
    why = 'Ultralytics allows 0.01 on either side; with one number beyond that it leaves out the whole image.'
    example = Example(wrong='0 320 240 64 48', right='0 0.5 0.5 0.1 0.1')
    limits = 'A row counts as pixels only if one of its coordinates is above 2.'
    advice = (
        'Draw one image with its rows. If they are pixels, divide x and width by the width of the image, y and height '
        'by its height; make `(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1` of two corners first. If they are '
        'fractions, clip what is outside, and delete what has no part inside. If many are outside, they were divided '
        'by a wrong size (turned by EXIF, swapped).'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        if not self._are_pixels(facts.labels):
            yield from rewrite(self, facts, 'Clip the boxes to the image.', SAFE)

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        return super().find_superseded(facts) if self._are_pixels(facts) else ()

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_pixels if self._are_pixels(facts) else self.summary

    def evidence(self, facts: LabelFacts) -> str:
        return f'{super().evidence(facts)}; {quantity(yolo_of(facts).left_out, "image")} left out'

    def _are_pixels(self, facts: LabelFacts) -> bool:
        found = yolo_of(facts)
        return share(found.in_pixels, found.rows) >= NEARLY_ALL
