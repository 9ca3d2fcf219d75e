"""Situations that show in the values of label maps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import numpy as np
from drawn_scenes import VOID, blob, save, scene, scenes
from situation import Situation, masks, with_options

CITYSCAPES_IDS = [7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33]
COCO_STUFF = [0, 1, 2, 7, 16, 43, 60, 91, 100, 118, 123, 140, 156, 168, 181]
MAP_OF_PAIR = ('map', 'renumber')


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


def renamed_cityscapes(root: Path) -> Any:
    """The files copied under names of one's own, a city in a folder."""
    for city in ('ulm', 'jena'):
        save(root / 'masks' / city, scenes([*CITYSCAPES_IDS, 0, 1, 4], 3))
    return root / 'masks', dict(num_classes=19)


def ade(last: int, files: int = 12) -> List[np.ndarray]:
    """0..last, many in each file."""
    return [scene([0, *range(1 + k, last + 1, 12), last], k) for k in range(files)]


SITUATIONS: Dict[str, Situation] = {
    'milesial/Pytorch-UNet#375': Situation(
        'Carvana-like masks of 0 and 255, two classes: the foreground is 255',
        ('MG103',),
        masks(blobs(255, 8), 2, files=dict(stem='car_{:03}_mask')),
        ('label_map={255: 1}',),
        ('threshold=0.5',),
    ),
    'SegmentationBLWX/sssegmentation#48': Situation(
        'one class name, "defect": the background was not counted, num_classes must be 2',
        ('MG215', 'MG102'),
        masks(blobs(1, 8), 1),
        ('num_classes=2',),
    ),
    'jfzhang95/pytorch-deeplab-xception#226': Situation(
        'two classes; a value 10 in some files of the complete set only',
        ('MG127', 'MG107'),
        masks(slip(10, 60, 3, 2), 2),
        ('10',),
    ),
    'three annotators, one with another void': Situation(
        'void is 255 in most files and 99 in those of one annotator',
        ('MG127', 'MG107'),
        masks(scenes([0, 1, 2, VOID], 24) + scenes([0, 1, 2, 99], 6), 3),
        ('99',),
        ('num_classes=100',),
    ),
    'counts from 1, no 0': Situation(
        'labels 1..N, 0 never occurs', ('MG115',), masks(scenes(range(1, 7), 8), 6), ('label_map=',)
    ),
    'counts from 1, 0 is no data': Situation(
        'LoveDA-like: 0 is no data, the classes are 1..7',
        ('MG115', 'MG102'),
        masks(unlabelled_zero(7), 7),
        ('reduce_zero_label=True',),
    ),
    'Cityscapes labelIds': Situation(
        'labelIds where trainIds are meant',
        ('MG101',),
        masks(scenes([*CITYSCAPES_IDS, 0, 1, 4], 4), 19, files=dict(stem='ulm_{:06}_gtFine_labelIds')),
        ('labelTrainIds',),
    ),
    'Cityscapes labelIds under other names': Situation(
        'raw ids in files named otherwise', ('MG101',), renamed_cityscapes, ('labelTrainIds',)
    ),
    'ADE20K not reduced': Situation(
        'raw ids 0..150 without reduce_zero_label', ('MG119',), masks(ade(150), 150), ('reduce_zero_label=True',)
    ),
    'COCO-Stuff raw': Situation(
        'raw stuff ids up to 181 in 171 classes', ('MG117',), masks(scenes(COCO_STUFF, 5), 171), ('labelTrainIds',)
    ),
    'BraTS 2021': Situation(
        '1, 2 and 4, no 3', ('MG118',), masks(scenes([0, 1, 2, 4], 8, keep=0.7), 4), ('label_map={4: 3}',)
    ),
    'gaps': Situation('0, 1, 2, 5, 9: five ids, not 0..4', ('MG116',), masks(scenes([0, 1, 2, 5, 9], 7), 5), ('9: 4',)),
    'a subset of ids, not renumbered': Situation(
        'three classes of a larger set were kept with their old ids 0, 7, 15',
        ('MG116', 'MG107'),
        masks(scenes([0, 7, 15], 7), 3),
        MAP_OF_PAIR[:1],
        ('num_classes=16',),
    ),
    'gray levels of three classes': Situation(
        '0, 127 and 255 drawn to be seen',
        ('MG125',),
        masks(scenes([0, 127, 255], 6), 3),
        ('127: 1', '255: 2'),
    ),
    'gray levels of five classes': Situation(
        '0, 64, 128, 192, 255 (the five gray levels of a tutorial)',
        ('MG125',),
        masks(scenes([0, 64, 128, 192, 255], 6), 5),
        ('64: 1', '255: 4'),
    ),
    'gray levels 0 and 128': Situation(
        'a binary mask drawn in middle gray', ('MG125',), masks(blobs(128, 6), 2), ('128: 1',)
    ),
    'gray levels 0 and 38': Situation(
        'a VOC palette of one class, converted to gray: (128, 0, 0) became 38',
        ('MG121', 'MG125', 'MG107'),
        masks(blobs(38, 6), 2),
        ('38: 1',),
    ),
    'void minus one': Situation(
        'a copied "label -= 1" made 254 of void',
        ('MG133',),
        masks(scenes([0, 1, 2, 3, 254], 6), 5),
        ('254: 255',),
    ),
    'VOC borders under ignore_index=0': Situation(
        'ignore_index was set to 0 to leave out the background: 255 is not ignored any more',
        ('MG104', 'MG209'),
        with_options(masks(scenes([0, 5, 12, 15, 20], 6, border=VOID), 21), ignore_index=0),
        ('ignore_index=255',),
    ),
    'VOC borders under ignore_index=21': Situation(
        'ignore_index is the number of classes; the files say 255',
        ('MG104',),
        with_options(masks(scenes([0, 5, 12, 15, 20], 6, border=VOID), 21), ignore_index=21),
        ('ignore_index=255',),
    ),
    'void is 0 and ignored': Situation(
        'ignore_index=0 lies inside the classes: its output competes for ever',
        ('MG209',),
        with_options(masks(scenes(range(6), 6), 6), ignore_index=0),
        ('outside the classes',),
    ),
    'reduce_zero_label on 0/1': Situation(
        'the background 0 is ignored, the object becomes class 0',
        ('MG124',),
        with_options(masks(blobs(1, 8), 2), reduce_zero_label=True),
        ('reduce_zero_label=False',),
    ),
    'half of the files are void': Situation(
        'tiles at the rim of the orthophoto hold 255 alone',
        ('MG128',),
        masks(scenes([0, 1, 2], 6) + [np.full((60, 80), VOID, np.uint8)] * 6, 3),
        ('6 file',),
    ),
    'two voids': Situation(
        'BDD-like: 255 is ignored, 254 means "out of roi" and is not',
        ('MG107', 'MG133'),
        masks(scenes([0, 1, 2, 3, 254, VOID], 8, keep=0.8), 4),
        ('254: 255',),
    ),
}
