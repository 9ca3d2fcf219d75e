"""YOLO label files, and the data.yaml that refers to them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar, Dict, Iterator, List, Optional, Sequence

from mmguard.findings.edits import ASKS, SAFE, Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import POSSIBLE, PROVEN, Finding
from mmguard.findings.rule import AnnotationRule, Example, Facts
from mmguard.findings.views import MOST, annotations_of, listing, share
from mmguard.findings.yolo import BEYOND, BOXES, DECLARED, NO_IMAGE, NO_LABEL, OTHER_TASK, ROWS, YoloFacts
from mmguard.text import quantity


def yolo_of(facts: LabelFacts) -> YoloFacts:
    return annotations_of(facts).yolo or YoloFacts()


class YoloRule(AnnotationRule):
    """A mistake listed in ``YoloFacts``."""

    kinds = ('instances',)
    #: The key of that list.
    fault: ClassVar[str]
    usual_certainty: ClassVar[str] = PROVEN

    def certainty(self, facts: LabelFacts) -> Optional[str]:
        return self.usual_certainty if self.count(facts) else None

    def count(self, facts: LabelFacts) -> int:
        return yolo_of(facts).counts.get(self.fault, 0)

    def evidence(self, facts: LabelFacts) -> str:
        return f'{self.count(facts):,} of {quantity(yolo_of(facts).rows, "row")}'

    def files(self, facts: LabelFacts) -> List[str]:
        return yolo_of(facts).faults.get(self.fault, [])


class RefusedRows(YoloRule):
    """Rows with the wrong columns for their task, or with values that are not numbers."""

    code = 'MG163'
    fault = ROWS
    summary = 'Rows of YOLO labels cannot be read.'
    title = 'Rows of YOLO labels cannot be read: {reasons}.'
    why = (
        'Ultralytics leaves out the whole image, with all of its rows, and says so in one line among thousands; an id '
        'with decimals is cut off.'
    )
    advice = (
        'Rewrite these rows: `class x y width height` of a box, `class x1 y1 x2 y2 x3 y3 ...` of an outline, four '
        'points of an oriented box, and, for keypoints, a box followed by as many numbers as `kpt_shape` in data.yaml '
        'requires.'
    )
    example = Example(wrong='0 0.5 0.5 0.1', right='0 0.5 0.5 0.1 0.1')
    limits = 'It knows one other order of the columns: pixels with the class last.'

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if share(self.count(labels), yolo_of(labels).rows) > MOST:
            return  # they are in another format, and not to be removed
        question = 'Can these rows be dropped, with their objects?'
        yield from rewrite(self, facts, 'Leave these rows out, and cut what follows a box.', ASKS, question)

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        return {'reasons': listing(yolo_of(facts).reasons, 4)}

    def evidence(self, facts: LabelFacts) -> str:
        parts = listing(f'{why} ({number:,})' for why, number in yolo_of(facts).reasons.items())
        return f'{super().evidence(facts)}: {parts}; {quantity(yolo_of(facts).left_out, "image")} left out'


#: Share of the rows above which pixels are a convention, not a slip.
NEARLY_ALL = 0.9


class NoFractions(YoloRule):
    """Coordinates outside [0, 1]: pixels, or slips."""

    code = 'MG164'
    fault = BEYOND
    summary = 'Coordinates are not fractions of the image: they are outside of [0, 1].'
    title_turned = 'Rows have a negative width or height (swapped corners?), or are outside of [0, 1].'
    title_pixels = 'The coordinates are pixels; YOLO wants fractions of the image, all in [0, 1].'
    why = 'Ultralytics allows 0.01 on either side; with one number beyond that it leaves out the whole image.'
    example = Example(wrong='0 320 240 64 48', right='0 0.5 0.5 0.1 0.1')
    limits = 'A row counts as pixels only if one of its coordinates is above 2.'
    advice = (
        'Draw one image with its rows. If they are pixels, divide x and width by the width of the image, y and height '
        'by its height; make `(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1` of two corners first. If they are '
        'fractions, clip what is outside, and correct a row with no part inside. If many rows are outside, they were '
        'divided by a wrong size (turned by EXIF, swapped). If a width or height is negative, look whether the box '
        'fits its object with `abs()` of it, and whether the converter swapped more corners.'
    )

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        if not self._are_pixels(labels) and not yolo_of(labels).turned:
            yield from rewrite(self, facts, 'Clip the boxes to the image.', SAFE)

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        return super().find_superseded(facts) if self._are_pixels(facts) else ()

    def choose_title(self, facts: LabelFacts) -> str:
        if self._are_pixels(facts):
            return self.title_pixels
        return self.title_turned if yolo_of(facts).turned else self.summary

    def evidence(self, facts: LabelFacts) -> str:
        return f'{super().evidence(facts)}; {quantity(yolo_of(facts).left_out, "image")} left out'

    def _are_pixels(self, facts: LabelFacts) -> bool:
        found = yolo_of(facts)
        return share(found.in_pixels, found.rows) >= NEARLY_ALL


class RowsOfAnotherTask(YoloRule):
    """Outlines among boxes, or boxes among outlines."""

    code = 'MG165'
    fault = OTHER_TASK
    summary = 'One set of YOLO labels mixes boxes and outlines.'
    title = '{others} of {rows} rows are {other}, the rest {task}.'
    why = (
        'In a label file with an outline ultralytics takes every row as an outline: the centre and the size of a box '
        'become two points, so the trained box is elsewhere. If another file holds only boxes, it removes all '
        'outlines of the set ("only boxes will be used and all segments will be removed"): segmentation has no mask '
        'to learn.'
    )
    example = Example(wrong='0 0.5 0.5 0.1 0.1 among outlines', right='0 0.45 0.45 0.55 0.45 0.55 0.55 0.45 0.55')
    limits = 'It does not judge keypoints, nor know which task is trained: most rows do not decide it.'
    advice = (
        'For segmentation or oriented boxes, draw the objects that are boxes as outlines, too, in every file. For '
        'detection, write the box around each outline (`(min(xs) + max(xs)) / 2`, `(min(ys) + max(ys)) / 2`, '
        '`max(xs) - min(xs)`, `max(ys) - min(ys)`), at least in files that hold both.'
    )

    def describe(self, facts: LabelFacts) -> Dict[str, str]:
        found = yolo_of(facts)
        numbers = {'others': f'{self.count(facts):,}', 'rows': f'{found.rows:,}'}
        return {'task': found.task, 'other': 'outlines' if found.task == BOXES else BOXES, **numbers}


class DataYaml(YoloRule):
    """A data.yaml that ultralytics does not accept, or that refers to folders without labels."""

    code = 'MG168'
    fault = DECLARED
    summary = 'Ultralytics cannot use the data.yaml as it is.'
    title_elsewhere = 'The label files are not in the folders in which ultralytics looks for them.'
    why = (
        'Ultralytics stops before the first image, trains with classes that differ from those of the labels, or '
        'trains without labels.'
    )
    example = Example(wrong='nc: 3, names: [cat, dog]', right='names: {0: cat, 1: dog}')
    limits = 'It judges only what the file says, and the folders next to those that it names.'
    #: Pattern of a fault -> advice; the first match applies.
    ways: ClassVar[Dict[str, str]] = {
        'kpt_shape|flip_idx': 'Write `kpt_shape: [17, 3]`, with every keypoint once in `flip_idx`.',
        'does not name|not a path': 'Name the folders of `train` and `val`.',
        'nc|names?': 'Complete `names`, one for each class, as a table from 0 on (0: cat, 1: dog), and delete `nc`.',
        'folders': 'Move the label files to the folder of the images with its last `images` replaced by `labels` '
        '(data/images/a.jpg, data/labels/a.txt), or next to the images where no folder is called `images`.',
    }
    advice = ' '.join(ways.values())

    def count(self, facts: LabelFacts) -> int:
        return super().count(facts) + len(yolo_of(facts).elsewhere)

    def choose_title(self, facts: LabelFacts) -> str:
        return self.summary if super().count(facts) else self.title_elsewhere

    def find(self, facts: Facts) -> Iterator[Finding]:
        elsewhere = yolo_of(facts.labels).elsewhere if facts.labels is not None else ()
        for found in super().find(facts):
            yield replace(found, places=tuple(elsewhere))

    def choose_advice(self, facts: Facts) -> str:
        assert facts.labels is not None
        faults = [fault.partition(': ')[2] for fault in self.files(facts.labels)]
        faults += ['folders'] * bool(yolo_of(facts.labels).elsewhere)
        keys = [next((key for key in self.ways if re.search(rf'\b({key})\b', fault)), '') for fault in faults]
        return ' '.join(way for key, way in self.ways.items() if key in keys)

    def find_superseded(self, facts: LabelFacts) -> Sequence[str]:
        found = yolo_of(facts)
        moved = sum(number for _, _, number in found.elsewhere.values())
        return ('MG169', 'MG174') if moved and moved == found.counts.get(NO_LABEL) else ()

    def evidence(self, facts: LabelFacts) -> str:
        texts = [
            f'{quantity(number, "label file")} of {folder} in {place}, it looks in {expected}'
            for folder, (expected, place, number) in yolo_of(facts).elsewhere.items()
        ]
        return '; '.join([*self.files(facts), *texts][:3])


#: In COCO itself, 1 % of the images have no object.
MANY = 0.5


class ImagesWithoutLabelFile(YoloRule):
    """Images that are trained as background because they have no label file."""

    code = 'MG169'
    aliases = ('MG167',)
    fault = NO_LABEL
    severity = 'info'
    usual_certainty = POSSIBLE
    summary = 'Images have no label file: they are trained as background.'
    why = (
        'That is right if they have no objects. Objects of an image whose label file is missing are learned as '
        'background.'
    )
    example = Example(wrong='images/train/7.jpg without labels/train/7.txt', right='labels/train/7.txt, perhaps empty')
    limits = 'It does not look whether an image shows an object.'
    advice = (
        'Look at a few of them. If they show objects, label these; if not, an empty label file says so: '
        '`touch labels/7.txt`. If label files have no image, rename them: names agree letter by letter (case, leading '
        'zeros, .jpg.txt), in folders that differ only in `images` and `labels`: images/train/a.jpg, '
        'labels/train/a.txt.'
    )

    def severity_of(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        if found.counts.get(NO_IMAGE) and self.count(facts) == found.images:
            return 'error'
        amiss = found.counts.get(NO_IMAGE, 0) or share(self.count(facts), found.images) >= MANY
        return 'warning' if amiss else self.severity

    def evidence(self, facts: LabelFacts) -> str:
        found = yolo_of(facts)
        unpaired = found.counts.get(NO_IMAGE, 0)
        names = ', '.join(found.faults.get(NO_IMAGE, [])[:3])
        others = f'; {quantity(unpaired, "label file")} without an image, e.g. {names}' if unpaired else ''
        return f'{self.count(facts):,} of {found.images:,} images{others}'
