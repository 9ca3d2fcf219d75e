"""Rules about boxes that are unusable, extend beyond their images, or are in another format."""

from __future__ import annotations

from dataclasses import replace
from typing import Dict, Iterator, List

from mmguard.facts.labels import LabelFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import LIKELY, PROVEN, Finding
from mmguard.findings.rule import AnnotationRule, DataRule, Example, Facts, Rule
from mmguard.findings.views import compute_share, get_annotations, join_items, rate_share
from mmguard.labels.instances import LABEL_REASON
from mmguard.language import Message, join
from mmguard.text import quantity

#: Minimum share of the boxes that lie inside their images when read in the right format.
NEARLY_ALL_INSIDE = 0.98
#: Minimum share of wrong boxes that shows a wrong format rather than single mistakes; minimum number of boxes.
MANY_FAULTY_BOXES, ENOUGH_BOXES = 0.2, 10


#: Format of boxes that no edit converts -> evidence.
_OTHER_FORMATS = {
    'rows': 'nearly all boxes fit their images when read as y1, x1, y2, x2 (TensorFlow)',
    'centres': 'nearly all boxes fit their images when read as center, width, height',
    'sizes': 'nearly all boxes fit their images when xmax and ymax are read as width and height',
    'swapped': 'nearly all boxes fit their images when width and height of the images are swapped',
    'turned': 'some boxes have a negative width or height',
    'off axis': 'boxes end outside their images in one direction only',
}


def find_fitting_formats(labels: LabelFacts) -> List[str]:
    """List the formats in which nearly all boxes, and more than in the present format, are inside their images."""
    # On square images both orders fit; then x first is assumed, as most tools write it.
    boxes = labels.boxes
    square = boxes.inside_as.get('rows', 0) <= boxes.inside_as.get('corners', 0)
    return [
        name
        for name, inside in sorted(boxes.inside_as.items(), key=lambda item: -item[1])
        if inside > boxes.inside_now
        and (name != 'sizes' or boxes.turned_boxes)
        and not (name == 'rows' and square)
        and compute_share(inside, get_annotations(labels).annotations) >= NEARLY_ALL_INSIDE
    ]


def are_many(boxes: int, labels: LabelFacts) -> bool:
    number = get_annotations(labels).annotations
    return number >= ENOUGH_BOXES and compute_share(boxes, number) >= MANY_FAULTY_BOXES


def describe_format(labels: LabelFacts) -> str:
    """Return the evidence that boxes have a format that no edit converts, or '' if nothing shows this."""
    ways = [*find_fitting_formats(labels), *(['turned'] if labels.boxes.turned_boxes else [])]
    ways += ['off axis'] if labels.boxes.off_axis else []
    return join('; ', (Message(_OTHER_FORMATS[way]) for way in ways if way in _OTHER_FORMATS))


def propose_corrections(rule: Rule, facts: Facts, boxes: int, title: str) -> Iterator[Edit]:
    """Yield an edit that converts all boxes to another format, or an edit that corrects only the wrong boxes.

    Args:
        boxes (int): Number of wrong boxes.
        title (str): Title of the edit that corrects only the wrong boxes.
    """
    labels = facts.labels or LabelFacts()
    ways = find_fitting_formats(labels)
    if 'corners' in ways:
        question = 'Are all boxes x1, y1, x2, y2 (compare one box with its image)?'
        yield from rewrite(rule, facts, 'Convert the boxes to x, y, width, height.', question, boxes='corners')
    if ways or labels.boxes.turned_boxes or labels.boxes.off_axis:
        return
    if not are_many(boxes, labels):
        yield from rewrite(rule, facts, title)
    elif boxes == labels.boxes.all_zero:
        question = 'Do the boxes 0, 0, 0, 0 mean that the image has no object?'
        yield from rewrite(rule, facts, title, question)


class UnusableBoxes(DataRule):
    code = 'MG109'
    shows_values = False
    kinds = ('instances',)
    needs = ('reasons',)
    summary = 'Boxes are not finite, have no area, or are wholly outside the image.'
    title = 'Boxes are not finite, have no area, or are wholly outside the image: {number}.'
    why = (
        'The logarithm of a width of 0 is -inf, so the loss is inf or nan, or an assertion about boxes fails; '
        'torchvision raises an error for such boxes.'
    )
    example = Example(wrong='"bbox": [10, 20, 0, 5]', right='"bbox": [10, 20, 4, 5]')
    limits = 'If there are many such boxes, the intended format is unknown: draw one image with its boxes.'
    advice = (
        'Draw one image with its boxes, and correct or delete wrong boxes. If many are wrong, check the format (COCO: '
        'x, y, width, height; VOC: two corners; YOLO: relative center and size), and whether image width and height '
        'are swapped.'
    )
    pytorch = (
        'Correct or delete single wrong boxes, or exclude them with guard_targets. If many are wrong, check their '
        'format: torchvision reads two corners, COCO stores x, y, width, height, DETR takes center and size divided by '
        'the image size.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        boxes = self._count_boxes(labels)
        number = sum(boxes.values())
        certainty = rate_share(compute_share(number, sum(labels.reasons.values())))
        if certainty is None:
            return
        files = [box for reason in boxes for box in labels.boxes.box_examples.get(reason, [])]
        seen = labels.evidence
        if files:
            seen = Message('{evidence}, e.g. {boxes}', evidence=seen, boxes=join_items(files, 3))
        evidence = join('; ', filter(None, (seen, describe_format(labels))))
        yield self.report_in(facts, certainty, evidence, {'number': f'{number:,}'}, files=files)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        yield from propose_corrections(self, facts, sum(self._count_boxes(labels).values()), 'Leave these boxes out.')

    def _count_boxes(self, labels: LabelFacts) -> Dict[str, int]:
        return {reason: count for reason, count in labels.reasons.items() if reason != LABEL_REASON and count > 0}


#: Minimum share of boxes over the edge of their image; a smaller share is due to rounding.
MANY = 0.01
#: Note of the edit of corners at 0 in VOC.
_COUNTED_FROM_ZERO_ADVICE = (
    'If the corners already count from 0, add 1 to all of them instead: mmguard and mmdet subtract 1 from VOC corners.'
)


class BoxesBeyondImage(AnnotationRule):
    code = 'MG152'
    severity = 'warning'
    summary = 'Boxes reach beyond the image.'
    title = 'Boxes reach beyond the image: {which}.'
    title_axis = (
        'Boxes reach beyond the image in {axis}, but never in the other direction: {which}. The scale of the boxes, or '
        'the size of the images in the file, is wrong in {axis}.'
    )
    advice_axis = (
        'Do not clip the boxes: draw one image with its boxes. If they were scaled by a wrong size, correct {axis} in '
        'all boxes, including those inside of their image.'
    )
    why = (
        'A transform clips such boxes, some to zero area, which makes the loss inf or nan. If there are many, the '
        'boxes are in another format, or the size of the image is wrong.'
    )
    example = Example(wrong='"bbox": [600, 20, 80, 40]  # width 640', right='"bbox": [600, 20, 40, 40]')
    limits = 'If fewer than 1 % of the boxes cross the edge, rounding is assumed.'
    advice = (
        'Draw an image with boxes: if they fit the objects, clip them and drop boxes without area (VOC: add 1 to all '
        'corners if they count from 0). If not, convert the box format or correct the annotated image sizes.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, number = labels.boxes, get_annotations(labels).annotations
        if not found.negative_boxes and compute_share(found.over_edge, number) < MANY:
            return
        texts: List[str] = []
        if found.negative_boxes:
            lowest = 1 if found.counts_from_one else 0
            boxes = quantity(found.negative_boxes, 'box')
            texts.append(Message('{boxes} with a corner below {lowest}', boxes=boxes, lowest=lowest))
        if found.over_edge:
            texts.append(Message('{boxes} over the edge', boxes=quantity(found.over_edge, 'box')))
        which, annotations = join(', ', texts), quantity(number, 'annotation')
        seen = Message('{which}, of {annotations}', which=which, annotations=annotations)
        evidence = join('; ', filter(None, (seen, describe_format(labels))))
        files = [*found.box_examples.get('negative', []), *found.box_examples.get('over_edge', [])]
        axis = found.off_axis
        title, advice = (self.title_axis, self.advice_axis) if axis else ('', self.advice)
        words = {'which': which, 'axis': axis}
        yield self.report_in(facts, LIKELY, evidence, words, title, files=files, advice=advice)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = labels.boxes
        # All negative corners are -1, in a format from which 1 is subtracted.
        if found.counts_from_one and found.negative_boxes and not found.below_minus_one:
            for edit in rewrite(self, facts, 'Move these boxes to the edge of the image.'):
                yield replace(edit, notes=(*edit.notes, _COUNTED_FROM_ZERO_ADVICE))
        else:
            boxes = found.negative_boxes + found.over_edge
            yield from propose_corrections(self, facts, boxes, 'Clamp these boxes into their images.')


#: Minimum share of boxes within [0, 1] for boxes to count as fractions.
MOST_IN_UNIT_SQUARE = 0.9
#: Minimum number of boxes (a few near the upper left also fit as corners); minimum number of fractions.
ENOUGH, SOME = 8, 3

#: Two corners, x first or y first (TensorFlow). If both fit, on square images, x first is assumed.
ORDERS = {'corners': 'x1, y1, x2, y2', 'rows': 'y1, x1, y2, x2'}
FRACTIONS = 'fractions'


class BoxesInAnotherForm(AnnotationRule):
    code = 'MG172'
    follows = ('MG109', 'MG130', 'MG146', 'MG152', 'MG174')
    aliases = ('MG173',)
    summary = 'The boxes are in another format: two corners, or fractions of the image size.'
    title = 'bbox seems to contain two corners ({corners}); COCO expects x, y, width, height.'
    title_fractions = 'The boxes are fractions of the image, in [0, 1], but {format} stores pixels.'
    why = (
        'Corners read as width and height make every box too large: training runs, and learns the wrong boxes. '
        'Fractions make every box smaller than a pixel: mmdet drops them silently; in other frameworks the loss is '
        'inf or nan.'
    )
    example = Example(wrong='"bbox": [100, 80, 300, 240]', right='"bbox": [100, 80, 200, 160]')
    limits = (
        'Corners are recognized only if there are at least 8 boxes. In square images x1, y1, x2, y2 and y1, x1, y2, x2 '
        'look the same, and fractions do not show whether the first two numbers are a corner or the center.'
    )
    advice = (
        'Draw one image with its boxes, then convert: `{corners} = ann["bbox"]; ann["bbox"] = [x1, y1, x2 - x1, y2 - '
        'y1]`, and set `ann["area"]` to the new width times height. Do not clip boxes: that hides the fault.'
    )
    advice_fractions = (
        'Draw one image with its boxes, then multiply them by width and height of the image. If the first two numbers '
        'are the center (YOLO), subtract half of the box size from them first.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found, form = labels.boxes, self._find_format(labels)
        boxes = quantity(get_annotations(labels).annotations, 'box')
        if form == FRACTIONS:
            evidence = Message('{number:,} of {boxes} lie within [0, 1]', number=found.inside_unit, boxes=boxes)
            words = {'format': get_annotations(labels).format.upper(), 'corners': ORDERS['corners']}
            advice = self.advice_fractions
            yield self.report_in(facts, PROVEN, evidence, words, self.title_fractions, files=(), advice=advice)
        elif form:
            evidence = Message(
                '{number:,} of {boxes} lie inside their image when read as corners; when read as x, y, width, height, '
                '{over_edge:,} end outside',
                number=found.inside_as.get(form, 0),
                boxes=boxes,
                over_edge=found.over_edge,
            )
            follow = tuple(code for code in self.follows if code not in ('MG130', 'MG174'))
            files = found.box_examples.get('over_edge', [])
            words = {'corners': ORDERS[form]}
            yield self.report_in(facts, PROVEN, evidence, words, files=files, follows=follow)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        form = self._find_format(labels)
        if form == FRACTIONS:
            is_sure = labels.boxes.counts_from_one
            corner = '' if is_sure else 'Are the first two numbers the upper left corner (not the center, as in YOLO)?'
            title = 'Multiply the boxes by width and height of the image.'
            yield from rewrite(self, facts, title, corner, boxes=FRACTIONS)
        elif form == 'corners':
            title = 'Convert the boxes to x, y, width, height.'
            question = Message('Are the boxes {order} (compare one box with its image)?', order=ORDERS[form])
            yield from rewrite(self, facts, title, question, boxes=form)

    def _find_format(self, labels: LabelFacts) -> str:
        """Return the wrong format of nearly all boxes ('fractions', 'corners' or 'rows'), or '' if none fits."""
        found, number = labels.boxes, get_annotations(labels).annotations
        if found.inside_unit >= SOME and compute_share(found.inside_unit, number) >= MOST_IN_UNIT_SQUARE:
            return FRACTIONS
        is_outside = found.over_edge or found.box_examples.get('box_outside')
        if number < ENOUGH or not is_outside:
            return ''
        fit = [name for name in ORDERS if compute_share(found.inside_as.get(name, 0), number) >= NEARLY_ALL_INSIDE]
        return max(fit, key=lambda name: found.inside_as[name], default='')
