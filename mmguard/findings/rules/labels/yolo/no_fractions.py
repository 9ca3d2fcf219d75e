from __future__ import annotations

from typing import Iterator, Sequence

from mmguard.findings.edits import SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import Finding
from mmguard.findings.rule import Facts
from mmguard.findings.rules.labels.yolo.base import YoloRule, yolo_of
from mmguard.findings.views import share
from mmguard.findings.yolo import BEYOND
from mmguard.text.words import counted

#: Share of the rows from which on pixels are the convention of the set, no slip.
NEARLY_ALL = 0.9


class NoFractions(YoloRule):
    """Coordinates outside of [0, 1]: pixels, or slips."""

    code = 'MG164'
    fault = BEYOND
    summary = 'Coordinates are no fractions of the image: they lie outside of [0, 1].'
    pixels = 'The coordinates are pixels; YOLO wants fractions of the image, all in [0, 1].'
    why = 'Ultralytics allows 0.01 on either side; one number beyond that, and it leaves out the whole image.'
    advice = (
        'Cut off what lies outside of the image, `x1, x2 = max(x1, 0), min(x2, 1)`, and delete an object without a '
        'part inside. Is the size right by which they were divided (turned by EXIF, swapped)?'
    )
    divide = (
        'Divide x and width by the width of the image, y and height by its height. Where a row holds two corners: '
        '`x, y, w, h = (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1` first.'
    )
    otherwise = (
        'Neither cut off at the edge of the image, nor divided by its size, are all rows as they should be: draw one '
        'image with its rows.'
    )

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is None:
            return
        if not self._in_pixels(facts.labels):
            yield from rewrite(self, facts, 'Clip the boxes to the image.', SAFE)

    def superseded(self, facts: LabelFacts) -> Sequence[str]:
        return super().superseded(facts) if self._in_pixels(facts) else ()

    def summarise(self, facts: LabelFacts) -> str:
        return self.pixels if self._in_pixels(facts) else self.summary

    def advise(self, facts: LabelFacts) -> str:
        return self.divide if self._in_pixels(facts) else self.advice

    def evidence(self, facts: LabelFacts) -> str:
        return f'{super().evidence(facts)}; {counted(yolo_of(facts).left_out, "image")} left out'

    def _in_pixels(self, facts: LabelFacts) -> bool:
        found = yolo_of(facts)
        return share(found.in_pixels, found.rows) >= NEARLY_ALL
