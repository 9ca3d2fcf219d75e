"""Boxes as another format writes them: what the whole set says, before single boxes are dropped or clamped."""

from __future__ import annotations

from typing import Iterator, List

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import AnnotationFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.rule import Facts, Rule
from mmguard.findings.views import annotations_of, share

#: Share of the boxes that lie inside their images, where they are read as they were written.
NEARLY_ALL = 0.98
#: Share of the boxes from which on it is a convention, not a few slips; of so many boxes at least.
MANY, ENOUGH = 0.2, 10

#: Formats of boxes as x, y, width, height.
JSON = ('coco', 'lvis')
#: Formats that no edit converts -> what to look at.
_LOOK_AT = {
    'rows': 'Are all boxes y1, x1, y2, x2, as TensorFlow writes them? Then `x, y, w, h = x1, y1, x2 - x1, y2 - y1`.',
    'centres': 'Do the first two numbers of all boxes give the centre? Then `x, y = x - w / 2, y - h / 2`.',
    'sizes': 'Do xmax and ymax hold width and height? VOC stores two corners: `xmax, ymax = xmin + w, ymin + h`.',
    'swapped': 'Are width and height of the images swapped in the annotations?',
    'turned': 'Were boxes with a negative width or height drawn from another corner? Then sort their two corners.',
}


def fitting(found: AnnotationFacts) -> List[str]:
    """The ways to read the boxes by which nearly all lie inside their images, and more than as they are read now."""
    # On square images both orders fit, and x comes first nearly everywhere.
    square = found.inside_as.get('rows', 0) <= found.inside_as.get('corners', 0)
    return [
        name
        for name, inside in sorted(found.inside_as.items(), key=lambda item: -item[1])
        if inside > found.inside_now
        and (name != 'sizes' or found.turned_boxes)
        and not (name == 'rows' and square)
        and share(inside, found.annotations) >= NEARLY_ALL
    ]


def are_many(boxes: int, found: AnnotationFacts) -> bool:
    return found.annotations >= ENOUGH and share(boxes, found.annotations) >= MANY


def describe_format(found: AnnotationFacts) -> str:
    """Return what to look at where the boxes seem to be written in a format that no edit converts, else nothing."""
    ways = [*fitting(found), *(['turned'] if found.turned_boxes else [])]
    asked = [_LOOK_AT[way] for way in ways if way in _LOOK_AT]
    return f'Draw one image with its boxes before you change any. {" ".join(asked)}' if asked else ''


def corrections(rule: Rule, facts: Facts, boxes: int, title: str) -> Iterator[Edit]:
    """What may be done about boxes: another format where all of them fit it; only else what changes single ones.

    Args:
        boxes (int): How many are wrong.
        title (str): What `mmguard fix` does with single ones.
    """
    found = annotations_of(facts.labels) if facts.labels is not None else AnnotationFacts()
    ways = fitting(found)
    if 'corners' in ways:
        question = 'Are all boxes x1, y1, x2, y2 (compare one with its image)?'
        yield from rewrite(rule, facts, 'Convert the boxes.', ASKS, question, boxes='corners')
    if ways or found.turned_boxes:
        return
    if not are_many(boxes, found):
        yield from rewrite(rule, facts, title, SAFE)
    elif boxes == found.all_zero and found.format in JSON:
        question = 'Do the boxes 0, 0, 0, 0 stand for nothing that is in the image?'
        yield from rewrite(rule, facts, title, ASKS, question)
