from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import corrections, describe_format
from mmguard.findings.finding import Finding
from mmguard.findings.rule import DataRule, Example, Facts
from mmguard.findings.views import annotations_of, certainty_of_share, listing, share
from mmguard.labels.instances import LABEL_REASON


class UnusableBoxes(DataRule):
    """Boxes that no assigner can match."""

    code = 'MG109'
    shows_values = False
    kinds = ('instances',)
    needs = ('reasons',)
    summary = 'Boxes that are not finite, have no area, or are wholly outside the image.'
    title = 'Boxes that are not finite, have no area, or are wholly outside the image: {number}.'
    why = (
        'The log of a width 0 is -inf: the loss is inf or nan, or an assertion about boxes fails; torchvision refuses '
        'such boxes.'
    )
    example = Example(
        wrong='"bbox": [10, 20, 0, 5]',
        right='"bbox": [10, 20, 4, 5]',
    )
    limits = 'Of many such boxes it does not know the format that was meant; draw one image with its boxes.'
    advice = (
        'Draw one image with its boxes. Correct or delete a few slips. If there are many, the format is another: COCO '
        'stores x, y (upper left corner), width, height; VOC and OpenImages two corners; YOLO the centre, divided by '
        'the image size. If the file is right, compare width and height of the images (swapped, resized, turned by '
        'EXIF), or look for a transform that moves boxes without their image.'
    )
    pytorch = (
        'Correct or delete these boxes; guard_targets leaves them out. If there are many, it is the format: '
        'torchvision reads two corners, COCO stores x, y, width, height, DETR takes centre and size divided by those '
        'of the image.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        boxes = sum(self._boxes(facts).values())
        return certainty_of_share(share(boxes, sum(facts.reasons.values())))

    def edits(self, finding: Finding, facts: Facts) -> Iterator[Edit]:
        if facts.labels is not None:
            boxes = sum(self._boxes(facts.labels).values())
            yield from corrections(self, facts, boxes, 'Leave these boxes out.')

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'number': f'{sum(self._boxes(facts).values()):,}'}

    def files(self, facts: LabelFacts) -> List[str]:
        examples = annotations_of(facts).box_examples
        return [box for reason in self._boxes(facts) for box in examples.get(reason, [])]

    def evidence(self, facts: LabelFacts) -> str:
        boxes = self.files(facts)
        seen = facts.evidence + (f', e.g. {listing(boxes, 3)}' if boxes else '')
        return '; '.join(filter(None, (seen, describe_format(annotations_of(facts)))))

    def _boxes(self, facts: LabelFacts) -> Dict[str, int]:
        return {reason: count for reason, count in facts.reasons.items() if reason != LABEL_REASON and count > 0}
