from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional

from mmguard.findings.box_formats import are_many, corrections, describe_format
from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Facts
from mmguard.findings.views import annotations_of, certainty_of_share, listing, share
from mmguard.labels.instances import LABEL_REASON

#: Reason -> what to do about it.
PART = {
    'box_no_area': 'Boxes with width or height 0: correct or delete them; torchvision refuses them, elsewhere the log '
    'of 0 makes the loss inf or nan.',
    'box_outside': 'Boxes wholly outside the image become empty when a transform clips them: delete them, or check '
    'width and height of the image (swapped? rotated by EXIF?).',
    'box_not_finite': 'Boxes with nan or inf: a division by 0 in the conversion; delete them.',
}


class UnusableBoxes(DataRule):
    """Boxes that no assigner can match."""

    code = 'MG109'
    shows_values = False
    kinds = ('instances',)
    needs = ('reasons',)
    summary = 'Boxes that are not finite, have no area, or lie wholly outside the image.'
    why = 'The log of a width 0 is -inf: the loss is inf or nan, or an assertion about boxes fires.'
    advice = (
        "{parts} Leave them out while training with `dict(type='GuardInstanceLabels', num_classes={num_classes}, "
        'check_boxes=True)`. If there are many, check the format: COCO stores x, y, width, height, VOC and OpenImages '
        'two corners; OpenImages divides by the image size, COCO and VOC do not; if the files are right, a transform '
        'moved the boxes: the image that they belong to is missing.'
    )

    many = (
        'So many are no slips: draw one image with its boxes before you delete any. COCO stores x, y (upper left '
        'corner), width, height; VOC and OpenImages two corners; YOLO the centre, divided by the size of the image. Or '
        'the boxes belong to images of another scale, or with width and height swapped: '
        '`sx = width_on_disk / width_annotated`.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        boxes = sum(self._boxes(facts).values())
        return certainty_of_share(share(boxes, sum(facts.reasons.values())))

    def advise(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        many = self.many if are_many(sum(self._boxes(facts).values()), found) else self.advice
        return describe_format(found) or many

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            parts = ' '.join(PART[reason] for reason in self._boxes(facts.labels) if reason in PART)
            boxes = sum(self._boxes(facts.labels).values())
            for edit in corrections(self, facts, boxes, 'Leave these boxes out.'):
                yield edit if edit.question else replace(edit, notes=(*edit.notes, *[parts] * bool(parts)))

    def words(self, facts: LabelFacts) -> Dict[str, str]:
        ranked = sorted(self._boxes(facts).items(), key=lambda item: -item[1])
        # The most frequent alone: a screen takes three sentences.
        return {'parts': next((PART[reason] for reason, _ in ranked if reason in PART), '')}

    def files(self, facts: LabelFacts) -> List[str]:
        examples = annotations_of(facts).box_examples
        return [box for reason in self._boxes(facts) for box in examples.get(reason, [])]

    def evidence(self, facts: LabelFacts) -> str:
        boxes = self.files(facts)
        return facts.evidence + (f', e.g. {listing(boxes, 3)}' if boxes else '')

    def _boxes(self, facts: LabelFacts) -> Dict[str, int]:
        return {reason: count for reason, count in facts.reasons.items() if reason != LABEL_REASON and count > 0}
