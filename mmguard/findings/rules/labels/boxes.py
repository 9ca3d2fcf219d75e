"""Boxes that are unusable, extend beyond their images, or are in another format."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import AnnotationFacts, LabelFacts
from mmguard.findings.file_edits import corrections, describe_format, rewrite
from mmguard.findings.finding import LIKELY, PROVEN
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts
from mmguard.findings.views import annotations_of, certainty_of_share, listing, share
from mmguard.labels.instances import LABEL_REASON
from mmguard.language import Message, join
from mmguard.text import quantity


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
    limits = 'If there are many such boxes, it cannot tell which format was meant: draw one image with its boxes.'
    advice = (
        'Draw one image with its boxes. If only a few boxes are wrong, correct or delete them. If many are, their '
        'format is wrong: COCO stores x, y (upper left corner), width, height; VOC and OpenImages two corners; YOLO '
        'the centre, divided by the image size. If the file is right, compare width and height of the images '
        '(swapped, resized, turned by EXIF), or look for a transform that moves boxes without their image.'
    )
    pytorch = (
        'If only a few boxes are wrong, correct or delete them; guard_targets leaves them out. If many are, their '
        'format is wrong: torchvision reads two corners, COCO stores x, y, width, height, DETR takes centre and size '
        'divided by those of the image.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        boxes = sum(self._boxes(facts).values())
        return certainty_of_share(share(boxes, sum(facts.reasons.values())))

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        boxes = sum(self._boxes(labels).values())
        yield from corrections(self, facts, boxes, 'Leave these boxes out.')

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'number': f'{sum(self._boxes(facts).values()):,}'}

    def files(self, facts: LabelFacts) -> List[str]:
        examples = annotations_of(facts).box_examples
        return [box for reason in self._boxes(facts) for box in examples.get(reason, [])]

    def evidence(self, facts: LabelFacts) -> str:
        boxes = self.files(facts)
        seen = facts.evidence
        if boxes:
            seen = Message('{evidence}, e.g. {boxes}', evidence=seen, boxes=listing(boxes, 3))
        return join('; ', filter(None, (seen, describe_format(annotations_of(facts)))))

    def _boxes(self, facts: LabelFacts) -> Dict[str, int]:
        return {reason: count for reason, count in facts.reasons.items() if reason != LABEL_REASON and count > 0}


#: Fewer boxes over the edge are due to rounding.
MANY = 0.01
#: Note of the edit of corners at -1.
_COUNTED_FROM_ZERO = 'If the corners count from 0 already, add 1 to all: the reader of VOC subtracts 1, as mmdet does.'


class BoxesBeyondImage(AnnotationRule):
    """Boxes that begin below 0 or end outside the image."""

    code = 'MG152'
    severity = 'warning'
    summary = 'Boxes reach beyond the image.'
    title = 'Boxes reach beyond the image: {which}.'
    why = (
        'A transform clips them, some to nothing: a box without area makes the loss inf or nan. Many of them mean '
        'another convention, or a wrong size of the image.'
    )
    example = Example(wrong='"bbox": [600, 20, 80, 40]  # width 640', right='"bbox": [600, 20, 40, 40]')
    limits = 'If fewer than 1 % of the boxes cross the edge, it assumes rounding.'
    advice = (
        'Draw one image with its boxes before you change any. If they are drawn right, clip them, then drop those '
        'without area; a VOC corner at -1 counts from 0 already: add 1 to all corners. If they are drawn wrong, '
        'convert them (from y1, x1, y2, x2, or centre and size), or correct the size of the image in the annotations '
        '(swapped, turned by EXIF, another scale).'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        found = annotations_of(facts)
        return LIKELY if found.negative_boxes or share(found.over_edge, found.annotations) >= MANY else None

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = annotations_of(labels)
        if self._shows_minus_one(found):
            for edit in rewrite(self, facts, 'Move these boxes to the edge of the image.', SAFE):
                yield replace(edit, notes=(*edit.notes, _COUNTED_FROM_ZERO))
        else:
            boxes = found.negative_boxes + found.over_edge
            yield from corrections(self, facts, boxes, 'Clamp these boxes into their images.')

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        found = annotations_of(facts)
        texts: List[str] = []
        if found.negative_boxes:
            texts.append(Message('{boxes} with a corner below 0', boxes=quantity(found.negative_boxes, 'box')))
        if found.over_edge:
            texts.append(Message('{boxes} over its edge', boxes=quantity(found.over_edge, 'box')))
        return {'which': join(', ', texts)}

    def evidence(self, facts: LabelFacts) -> str:
        found = annotations_of(facts)
        seen = Message(
            '{which}, of {annotations}',
            which=self.describe(facts)['which'],
            annotations=quantity(found.annotations, 'annotation'),
        )
        return join('; ', filter(None, (seen, describe_format(found))))

    def files(self, facts: LabelFacts) -> List[str]:
        examples = annotations_of(facts).box_examples
        return [*examples.get('negative', []), *examples.get('over_edge', [])]

    def _shows_minus_one(self, found: AnnotationFacts) -> bool:
        """Return True if all negative corners are -1, in a format from which 1 is subtracted."""
        return found.counts_from_one and bool(found.negative_boxes) and not found.below_minus_one


#: A few slips may be in neither format; a box of one pixel at the origin may occur.
NEARLY_ALL, MOST = 0.98, 0.9
#: Some valid boxes, perhaps all of a few, are near the upper left, where width and height exceed x and y.
ENOUGH, SOME = 8, 3

#: Two corners, x first or y first (TensorFlow). If both fit, on square images, x first is assumed.
ORDERS = {'corners': 'x1, y1, x2, y2', 'rows': 'y1, x1, y2, x2'}
FRACTIONS = 'fractions'


class BoxesInAnotherForm(AnnotationRule):
    """Corners where COCO expects x, y, width, height; boxes divided by the image size."""

    code = 'MG172'
    aliases = ('MG173',)
    kinds = ('instances',)
    summary = 'The boxes are written in another form: as two corners, or as fractions of the image.'
    title = 'bbox seems to hold two corners ({corners}); COCO wants x, y, width, height.'
    title_fractions = 'The boxes are fractions of the image, in [0, 1], but {format} stores pixels.'
    why = (
        'Corners read as width and height make every box too large: training runs, and learns the wrong boxes. '
        'Fractions make every box smaller than a pixel: mmdet leaves them out silently, other frameworks get a loss '
        'of inf or nan.'
    )
    example = Example(wrong='"bbox": [100, 80, 300, 240]', right='"bbox": [100, 80, 200, 160]')
    limits = (
        'Corners are recognized from 8 boxes on. In square images x1, y1, x2, y2 and y1, x1, y2, x2 look the same, '
        'and fractions do not show whether the first two are a corner or the centre.'
    )
    advice = (
        'Draw one image with its boxes before you change any. If they are corners: `{corners} = ann["bbox"]; '
        'ann["bbox"] = [x1, y1, x2 - x1, y2 - y1]`, and set `ann["area"]` to the new width times height. If they are '
        'fractions: multiply by width and height of the image; if the first two are the centre (YOLO), subtract half '
        'the size from them before that. Do not clip boxes at the edge of the image: that hides the fault.'
    )

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return PROVEN if self._find_format(facts) else None

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        follow = super().find_superseded(facts)
        return (
            follow
            if self._find_format(facts) == FRACTIONS
            else [one for one in follow if one not in ('MG130', 'MG174')]
        )

    def choose_title(self, facts: LabelFacts) -> str:
        return self.title_fractions if self._find_format(facts) == FRACTIONS else self.title

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        form = self._find_format(labels)
        if form == FRACTIONS:
            is_sure = annotations_of(labels).counts_from_one
            corner = '' if is_sure else 'Are the first two numbers the upper left corner (not the centre, as in YOLO)?'
            title = 'Multiply the boxes by width and height of the image.'
            yield from rewrite(self, facts, title, SAFE if is_sure else ASKS, corner, boxes=FRACTIONS)
        elif form == 'corners':
            title, question = (
                'Convert the boxes to x, y, width, height.',
                Message('Are they {order} (compare one box with its image)?', order=ORDERS[form]),
            )
            yield from rewrite(self, facts, title, ASKS, question, boxes=form)

    def evidence(self, facts: LabelFacts) -> str:
        found, form = annotations_of(facts), self._find_format(facts)
        if form == FRACTIONS:
            boxes = quantity(found.annotations, 'box')
            return Message('{number:,} of {boxes} lie within [0, 1]', number=found.inside_unit, boxes=boxes)
        return Message(
            '{number:,} of {boxes} lie inside their image when read as corners; as x, y, width, height {over_edge:,} '
            'end outside',
            number=found.inside_as.get(form, 0),
            boxes=quantity(found.annotations, 'box'),
            over_edge=found.over_edge,
        )

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        corners = ORDERS.get(self._find_format(facts), ORDERS['corners'])
        return {'corners': corners, 'format': annotations_of(facts).format.upper()}

    def files(self, facts: LabelFacts) -> List[str]:
        return [] if self._find_format(facts) == FRACTIONS else annotations_of(facts).box_examples.get('over_edge', [])

    def _find_format(self, facts: LabelFacts) -> str:
        """Return the format of nearly all boxes if it is wrong; empty if unknown."""
        found = annotations_of(facts)
        if found.inside_unit >= SOME and share(found.inside_unit, found.annotations) >= MOST:
            return FRACTIONS
        is_outside = found.over_edge or found.box_examples.get('box_outside')
        if found.annotations < ENOUGH or not is_outside:
            return ''
        fit = [name for name in ORDERS if share(found.inside_as.get(name, 0), found.annotations) >= NEARLY_ALL]
        return max(fit, key=lambda name: found.inside_as[name], default='')
