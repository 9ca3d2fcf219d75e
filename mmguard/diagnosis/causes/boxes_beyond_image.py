from __future__ import annotations

from typing import Dict, List

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause
from mmguard.diagnosis.views import annotations_of, share
from mmguard.words import counted

#: Fewer boxes over the edge are rounding.
MANY = 0.01


class BoxesBeyondImage(Cause):
    """Boxes that begin below 0 or end outside the image."""

    code = 'MG152'
    kinds = ('pixels', 'instances')
    needs = ('annotations',)
    severity = 'warning'
    summary = 'Boxes reach beyond the image: {which}.'
    why = (
        'A transform clips them, some to nothing: a box without area makes the loss inf or nan. Many of them mean '
        'another convention, or a wrong size of the image.'
    )
    advice = (
        "Corners below 0: VOC's minus-one was applied to corners that count from 0 already; add 1 again, or do not "
        'subtract. Corners beyond the size: is bbox x, y of the upper left corner (not the centre), width, height? Are '
        'width and height those of the image (swapped, turned by EXIF, another scale)? If all that is right: '
        '`x1, y1 = max(x1, 0), max(y1, 0)` and `x2, y2 = min(x2, width), min(y2, height)` clip them; drop what has no '
        'area then.'
    )

    def likelihood(self, facts: LabelFacts) -> float:
        found = annotations_of(facts)
        if found.negative_boxes:
            return 0.62
        return 0.5 if share(found.over_edge, found.annotations) >= MANY else 0.0

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        found = annotations_of(facts)
        texts: List[str] = []
        if found.negative_boxes:
            texts.append(f'{counted(found.negative_boxes, "box")} with a corner below 0')
        if found.over_edge:
            texts.append(f'{counted(found.over_edge, "box")} over its edge')
        return {'which': ', '.join(texts)}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        return f'{self.words(facts)["which"]}, of {counted(found.annotations, "annotation")}'

    def values(self, facts: LabelFacts) -> Dict[int, int]:
        return {}
