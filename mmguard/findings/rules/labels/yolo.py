"""Rules about YOLO label files, and about the data.yaml that refers to them."""

from __future__ import annotations

import re
from typing import ClassVar, Dict, Iterator

from mmguard.facts.labels import LabelFacts
from mmguard.facts.yolo import BEYOND, BOXES, DECLARED, NO_IMAGE, NO_LABEL, OTHER_TASK, ROWS, YoloFacts
from mmguard.findings.edits import Edit
from mmguard.findings.file_edits import rewrite
from mmguard.findings.finding import ERROR, INFO, POSSIBLE, PROVEN, WARNING, Finding
from mmguard.findings.rule import AnnotationRule, Example, Facts
from mmguard.findings.views import MOST, compute_share, get_yolo, join_items
from mmguard.text import quantity


def count_rows(facts: YoloFacts, fault: str) -> str:
    """Return how many of the rows have a fault, as a text such as ``'3 of 120 rows'``."""
    return f'{facts.counts.get(fault, 0):,} of {quantity(facts.rows, "row")}'


class YoloRule(AnnotationRule):
    """Base class of rules about YOLO label files."""

    needs = ('yolo',)


class RefusedRows(YoloRule):
    code = 'MG163'
    summary = 'Rows of YOLO labels cannot be read.'
    title = 'Rows of YOLO labels cannot be read: {reasons}.'
    why = (
        'Ultralytics excludes the whole image, with all of its rows, and reports this in one line among thousands. A '
        'class id with decimals is truncated instead.'
    )
    advice = (
        'Rewrite these rows: `class x y width height` for a box, `class x1 y1 x2 y2 x3 y3 ...` for an outline, four '
        'such points for an oriented box, and for keypoints a box followed by as many numbers as `kpt_shape` in '
        'data.yaml requires.'
    )
    example = Example(wrong='0 0.5 0.5 0.1', right='0 0.5 0.5 0.1 0.1')
    limits = 'Rows in which the class comes last are recognized only if their coordinates are pixels.'

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found = get_yolo(labels)
        parts = join_items(f'{why} ({number:,})' for why, number in found.reasons.items())
        evidence = f'{count_rows(found, ROWS)}: {parts}; {quantity(found.left_out, "image")} left out'
        if found.counts.get(ROWS):
            files = found.faults.get(ROWS, [])
            yield self.report_in(facts, PROVEN, evidence, {'reasons': join_items(found.reasons, 4)}, files=files)

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = get_yolo(labels)
        if compute_share(found.counts.get(ROWS, 0), found.rows) > MOST:
            return  # rows in another format must not be removed
        question = 'Are the images fully labeled without these rows?'
        yield from rewrite(self, facts, 'Leave these rows out, and remove the sixth column of boxes.', question)


#: Minimum share of rows in pixels to regard pixels as the format of the files, not as single mistakes.
NEARLY_ALL_IN_PIXELS = 0.9


class NoFractions(YoloRule):
    code = 'MG164'
    follows = ('MG109', 'MG152', 'MG165', 'MG174')
    summary = 'Coordinates are not fractions of the image: they are outside of [0, 1].'
    title_turned = 'Rows have a negative width or height (swapped corners?), or are outside of [0, 1].'
    title_axis = (
        'Many boxes reach beyond the image along {axis}, and none along the other axis, as if they were divided by a '
        'wrong size.'
    )
    advice_axis = (
        'Do not clip the boxes before you have drawn one image. If they were divided by a wrong size, divide x and '
        'width by the width of the image, y and height by its height, in all rows: rows inside of [0, 1] are wrong, '
        'too.'
    )
    title_pixels = 'The coordinates are pixels; YOLO expects fractions of the image, all in [0, 1].'
    why = 'Ultralytics excludes the whole image if one coordinate is outside of [0, 1] by more than 0.01.'
    example = Example(wrong='0 320 240 64 48', right='0 0.5 0.5 0.1 0.1')
    limits = 'A row counts as pixels only if one of its coordinates is above 2.'
    advice = (
        'Draw one image with its rows, then convert corners to center and size, divide pixels by the width and height '
        'of the image, or clip fractions outside of [0, 1]. If many rows are outside, they were divided by a wrong '
        'size (width and height swapped, or EXIF rotation ignored).'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found = get_yolo(labels)
        if not found.counts.get(BEYOND):
            return
        evidence = f'{count_rows(found, BEYOND)}; {quantity(found.left_out, "image")} left out'
        files = found.faults.get(BEYOND, [])
        if _are_pixels(found):
            yield self.report_in(facts, PROVEN, evidence, title=self.title_pixels, files=files)
        elif labels.boxes.off_axis:
            words = {'axis': labels.boxes.off_axis}
            yield self.report_in(facts, PROVEN, evidence, words, self.title_axis, advice=self.advice_axis, files=files)
        else:
            title = self.title_turned if found.turned else ''
            yield self.report_in(facts, PROVEN, evidence, title=title, files=files, follows=())

    def offer(self, facts: Facts, labels: LabelFacts) -> Iterator[Edit]:
        found = get_yolo(labels)
        if not _are_pixels(found) and not found.turned and not labels.boxes.off_axis:
            yield from rewrite(self, facts, 'Clip the boxes to the image.')


def _are_pixels(facts: YoloFacts) -> bool:
    return compute_share(facts.in_pixels, facts.rows) >= NEARLY_ALL_IN_PIXELS


class RowsOfAnotherTask(YoloRule):
    code = 'MG165'
    summary = 'One set of YOLO labels mixes boxes and outlines.'
    title = '{others} of {rows} rows are {other}, the rest {task}.'
    why = (
        'In a label file with an outline, ultralytics reads every row as an outline: the center and the size of a box '
        'become two points, so the trained box is wrong. If another file contains only boxes, ultralytics removes all '
        'outlines ("only boxes will be used and all segments will be removed"): segmentation has no mask to learn.'
    )
    example = Example(wrong='0 0.5 0.5 0.1 0.1 among outlines', right='0 0.45 0.45 0.55 0.45 0.55 0.55 0.45 0.55')
    limits = 'Rows with keypoints are not checked. The task is that of most rows, even if these are the wrong ones.'
    advice = (
        'For segmentation or oriented boxes, replace each box by an outline of its object, in every file. For '
        'detection, replace each outline by the box around it (`(min(xs) + max(xs)) / 2`, `(min(ys) + max(ys)) / 2`, '
        '`max(xs) - min(xs)`, `max(ys) - min(ys)`), at least in files that contain both.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found = get_yolo(labels)
        others = found.counts.get(OTHER_TASK, 0)
        if others:
            other = 'outlines' if found.task == BOXES else BOXES
            words = {'others': f'{others:,}', 'rows': f'{found.rows:,}', 'task': found.task, 'other': other}
            files = found.faults.get(OTHER_TASK, [])
            yield self.report_in(facts, PROVEN, count_rows(found, OTHER_TASK), words, files=files)


class UnusableDataYaml(YoloRule):
    code = 'MG168'
    summary = 'Ultralytics cannot use this data.yaml.'
    title_elsewhere = 'The label files are not in the folders in which ultralytics looks for them.'
    why = (
        'Ultralytics stops before the first image, trains with classes that differ from those of the labels, or '
        'trains without labels.'
    )
    example = Example(wrong='nc: 3, names: [cat, dog]', right='names: {0: cat, 1: dog}')
    limits = 'Only data.yaml, the image folders that it names, and the folders near them are checked.'
    #: Pattern of a fault -> advice; the first match applies.
    ways: ClassVar[Dict[str, str]] = {
        'kpt_shape|flip_idx': 'Write `kpt_shape: [number, 2 or 3]`, and each keypoint once in `flip_idx`.',
        'does not name|not a path': 'Set `train` and `val` to the image folders.',
        'nc|names?': 'Write one name per class in `names`, numbered from 0 (0: cat, 1: dog), and delete `nc`.',
        'folders': 'Move each label file to the path of its image, with the last folder `images` replaced by `labels` '
        '(data/images/a.jpg: data/labels/a.txt), or next to the image if no folder is called `images`.',
    }
    advice = ' '.join(ways.values())

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found = get_yolo(labels)
        declared = found.faults.get(DECLARED, [])
        if not found.counts.get(DECLARED) and not found.elsewhere:
            return
        texts = [
            f'{quantity(number, "label file")} of {folder} found in {place}, but ultralytics looks in {expected}'
            for folder, (expected, place, number) in found.elsewhere.items()
        ]
        faults = [*(fault.partition(': ')[2] for fault in declared), *['folders'] * bool(found.elsewhere)]
        keys = [next((key for key in self.ways if re.search(rf'\b({key})\b', fault)), '') for fault in faults]
        moved = sum(number for _, _, number in found.elsewhere.values())
        yield self.report_in(
            facts,
            PROVEN,
            '; '.join([*declared, *texts][:3]),
            title=self.summary if found.counts.get(DECLARED) else self.title_elsewhere,
            files=declared,
            places=tuple(found.elsewhere),
            advice=' '.join(way for key, way in self.ways.items() if key in keys),
            follows=('MG169', 'MG174') if moved and moved == found.counts.get(NO_LABEL) else (),
        )


#: Minimum number of keypoints that usually include a left and a right point.
SEVERAL_POINTS = 2


class PointsNotSwapped(YoloRule):
    code = 'MG159'
    severity = WARNING
    summary = 'flip_idx of data.yaml does not swap any keypoints.'
    title = 'flip_idx leaves all {points} keypoints as they are, but half of the images are mirrored (fliplr=0.5).'
    why = 'A mirrored left eye looks like a right eye: without a swap, it is still trained as a left eye.'
    example = Example(wrong='kpt_shape: [4, 2], flip_idx: [0, 1, 2, 3]', right='flip_idx: [1, 0, 3, 2]')
    limits = 'The meaning of the points is unknown: if none of them is a left or right one, this flip_idx is correct.'
    advice = (
        'If some points form left-right pairs, write the number of the partner of each point in flip_idx, or train '
        'with fliplr=0. If no points form such pairs, change nothing.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        points = get_yolo(labels).unswapped
        if points >= SEVERAL_POINTS:
            evidence = f'flip_idx: 0 to {points - 1}, in order'
            yield self.report_in(facts, POSSIBLE, evidence, {'points': points}, places=('flip_idx',))


#: Share of the images without a label file above which they are a warning; in COCO, 1 % have no object.
MANY_UNPAIRED = 0.5


class ImagesWithoutLabelFile(YoloRule):
    code = 'MG169'
    aliases = ('MG167',)
    severity = INFO
    summary = 'Images have no label file: they are trained as background.'
    why = (
        'This is correct for images without objects. If a label file is missing, the objects of its image are learned '
        'as background.'
    )
    example = Example(wrong='images/train/7.jpg without labels/train/7.txt', right='labels/train/7.txt, perhaps empty')
    limits = 'Images are not opened, so mmguard does not know whether they show objects.'
    advice = (
        'Look at a few of these images: label their objects, or write an empty label file (`touch labels/7.txt`) if '
        'they show none. If label files have no image, give them the exact name of their image, in folders that differ '
        'only in `images` and `labels`: images/train/a.jpg, labels/train/a.txt.'
    )

    def look(self, facts: Facts, labels: LabelFacts) -> Iterator[Finding]:
        found = get_yolo(labels)
        number, unpaired = found.counts.get(NO_LABEL, 0), found.counts.get(NO_IMAGE, 0)
        amiss = unpaired or compute_share(number, found.images) >= MANY_UNPAIRED
        severity = ERROR if unpaired and number == found.images else WARNING if amiss else INFO
        names = ', '.join(found.faults.get(NO_IMAGE, [])[:3])
        others = f'; {quantity(unpaired, "label file")} without an image, e.g. {names}' if unpaired else ''
        evidence = f'{number:,} of {found.images:,} images{others}'
        if number:
            files = found.faults.get(NO_LABEL, [])
            yield self.report_in(facts, POSSIBLE, evidence, severity=severity, files=files)
