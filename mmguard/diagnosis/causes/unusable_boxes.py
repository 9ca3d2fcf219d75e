from __future__ import annotations

from mmguard.diagnosis.facts import LabelFacts
from mmguard.diagnosis.finding import Cause


class UnusableBoxes(Cause):
    """Boxes that no assigner can match."""

    code = 'MG109'
    summary = 'Boxes that are not finite, have no area, or lie wholly outside the image.'
    advice = (
        'Check the format: COCO stores x, y, width, height, VOC and OpenImages two corners; OpenImages divides by the '
        'image size, COCO and VOC do not. If only a few files have them, correct those. If the files are right, a '
        'transform moved the boxes: it lost the image that they belong to.'
    )
    kinds = ('instances',)

    def likelihood(self, facts: LabelFacts) -> float:
        boxes = sum(count for reason, count in facts.reasons.items() if reason != 'label')
        return 0.6 * boxes / sum(facts.reasons.values()) if boxes else 0.0
