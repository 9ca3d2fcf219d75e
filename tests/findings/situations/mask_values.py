"""Situations that show in the values of label maps."""

from __future__ import annotations

from typing import Dict, List, Sequence

import numpy as np
from drawn_scenes import VOID, blob, scene, scenes
from situation import Situation, masks, seg_config, seg_model, with_options

from mmguard.findings.known_sets import COCO_STUFF_CLASSES

CITYSCAPES_IDS = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
COCO_STUFF_IDS = sorted(COCO_STUFF_CLASSES)
FIVE = ['background', 'road', 'house', 'tree', 'sky']


def blobs(value: int, files: int, ground: int = 0, first: int = 0) -> List[np.ndarray]:
    return [blob(value, ground, seed) for seed in range(first, first + files)]


def slip(value: int, files: int, wrong: int, classes: int) -> List[np.ndarray]:
    """Clean scenes, a few of them with a small patch of a value of nobody."""
    drawn = scenes(range(classes), files, keep=0.9)
    for label in drawn[:: max(files // wrong, 1)][:wrong]:
        label[10:14, 20:23] = value
    return drawn


def unlabelled_zero(classes: int, files: int = 8) -> List[np.ndarray]:
    """1..N, and a few pixels of 0 where nobody drew."""
    drawn = scenes(range(1, classes + 1), files, keep=0.9)
    for label in drawn:
        label[:2, :9] = 0
    return drawn


def ade(last: int, files: int = 12) -> List[np.ndarray]:
    """0..last, many in each file."""
    return [scene([0, *range(1 + k, last + 1, 12), last], k) for k in range(files)]


def of_ids(ids: Sequence[int], files: int = 12, each_has: int = 9, shift: int = 0) -> List[np.ndarray]:
    """Each file holds a few of the ids, all files together most of them."""
    random = np.random.default_rng(len(ids))
    return [scene([int(v) + shift for v in random.permutation(ids)[:each_has]], number) for number in range(files)]


def subtracted(labels: Sequence[np.ndarray]) -> List[np.ndarray]:
    """``label -= 1`` in 8 bits: 0 becomes 255."""
    return [label - np.uint8(1) for label in labels]


def mostly_zero(classes: int, files: int = 10) -> List[np.ndarray]:
    """A background that fills about half of each file, and regions of the other classes in it."""
    drawn = scenes(range(classes), files)
    for number, label in enumerate(drawn):
        label[: 20 + number] = 0
    return drawn


SITUATIONS: Dict[str, Situation] = {
    'SegmentationBLWX/sssegmentation#48': Situation(
        'one class name, "defect": the background was not counted, num_classes must be 2',
        ('MG215', 'MG102'),
        masks(blobs(1, 8), 1),
        first=dict(num_classes=2),
    ),
    'counts from 1, no 0': Situation(
        'labels 1..N, 0 never occurs',
        ('MG115',),
        masks(scenes(range(1, 7), 8), 6),
        first=dict(label_map={value: value - 1 for value in range(1, 7)}),
    ),
    'counts from 1, 0 is no data': Situation(
        'LoveDA-like: 0 is no data, the classes are 1..7',
        ('MG115', 'MG102'),
        masks(unlabelled_zero(7), 7),
        first=dict(reduce_zero_label=True),
    ),
    'LiheYoung/FreeMask#4': Situation(
        'raw COCO-Stuff ids, nobody said how many classes there are',
        ('MG117',),
        masks(of_ids(COCO_STUFF_IDS, 20, 9), None),
    ),
    'COCO-Stuff, 150 classes': Situation(
        'the table of ADE for ids of COCO-Stuff',
        ('MG117',),
        masks(of_ids(COCO_STUFF_IDS, 20, 9), 150),
        never=dict(num_classes=[182]),
    ),
    'a subset of ids, not renumbered': Situation(
        'three classes of a larger set were kept with their old ids 0, 7, 15',
        ('MG116', 'MG107'),
        masks(scenes([0, 7, 15], 7), 3),
        first=dict(label_map={7: 1, 15: 2}),
        never=dict(num_classes=[16]),
    ),
    'void minus one': Situation(
        'a copied "label -= 1" made 254 of void',
        ('MG133',),
        masks(scenes([0, 1, 2, 3, 254], 6), 5),
        first=dict(label_map={254: 255}),
    ),
    'five classes, background first': Situation(
        '0..4 stored as 255, 0..3',
        ('MG133',),
        seg_config(subtracted(mostly_zero(5)), FIVE, seg_model(5)),
        first=dict(label_map={255: 0, 0: 1, 1: 2, 2: 3, 3: 4}),
    ),
    'VOC borders under ignore_index=0': Situation(
        'ignore_index was set to 0 to leave out the background: 255 is not ignored any more',
        ('MG104', 'MG209'),
        with_options(masks(scenes([0, 5, 12, 15, 20], 6, border=VOID), 21), ignore_index=0),
        first=dict(ignore_index=255),
    ),
    'half of the files are void': Situation(
        'tiles at the rim of the orthophoto hold 255 alone',
        ('MG128',),
        masks(scenes([0, 1, 2], 6) + [np.full((60, 80), VOID, np.uint8)] * 6, 3),
    ),
    'two voids': Situation(
        'BDD-like: 255 is ignored, 254 means "out of roi" and is not',
        ('MG107', 'MG133'),
        masks(scenes([0, 1, 2, 3, 254, VOID], 8, keep=0.8), 4),
        first=dict(label_map={254: 255}),
    ),
}
