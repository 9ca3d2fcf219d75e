"""Kinds of causes in the values of label maps: each reported once, and drawn again with other values and sizes.

Written down with their causes before any scan was run on them. ``near`` names what looks alike and is another thing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
from drawn_scenes import VOID, save, scene, scenes
from mask_values import CITYSCAPES_IDS, blobs
from PIL import Image
from situation import Build, masks, seg_config, seg_model

from mmguard.findings.known_sets import COCO_STUFF_CLASSES


class Kind(NamedTuple):
    """What somebody meets, as in ``situation.Situation``; of the advice the first edit alone is looked at.

    Attributes:
        truth (str): The true cause, or what it is in truth where it only looks like the kind.
        codes (tuple[str]): Codes that name it; the first finding has one of them.
        build (callable): Makes the files and returns the target of the scan, or (target, options).
        says (tuple[str]): What the finding says.
        first (tuple[str]): What the first edit says, else the advice.
        never (tuple[str]): What it must not say: advice that does harm here.
    """

    truth: str
    codes: Tuple[str, ...]
    build: Build
    says: Tuple[str, ...] = ()
    first: Tuple[str, ...] = ()
    never: Tuple[str, ...] = ()


TEN = ['background', 'road', 'tree', 'house', 'car', 'river', 'field', 'bridge', 'fence', 'pole']
FIVE = ['background', 'road', 'house', 'tree', 'sky']
COCO_STUFF_IDS = sorted(COCO_STUFF_CLASSES)


def patched(value: int, classes: int, files: int, where: Sequence[int], size: Tuple[int, int]) -> List[np.ndarray]:
    """Scenes of ``classes``, in some of them a patch of another value."""
    drawn = scenes(range(classes), files, keep=0.7)
    for number in where:
        drawn[number][12 : 12 + size[0], 20 : 20 + size[1]] = value
    return drawn


def of_ids(ids: Sequence[int], files: int = 12, each_has: int = 9, shift: int = 0) -> List[np.ndarray]:
    """Each file holds a few of the ids, all files together most of them."""
    random = np.random.default_rng(len(ids))
    return [scene([int(v) + shift for v in random.permutation(ids)[:each_has]], number) for number in range(files)]


def wide_ids(number: int, classes: int) -> Build:
    """Files of 16 bits that hold ``number`` ids, and all bits where there is none."""
    random = np.random.default_rng(0)
    drawn = [np.kron(random.integers(0, number, (12, 16)), np.ones((6, 6))).astype(np.uint16) for _ in range(14)]
    for label in drawn:
        label[:2] = 65535
    return masks(drawn, classes)


def renamed_cityscapes(classes: Any) -> Build:
    return masks([scene([*CITYSCAPES_IDS, 0, 1, 4], n) for n in range(6)], classes)


def subtracted(labels: Sequence[np.ndarray]) -> List[np.ndarray]:
    """``label -= 1`` in 8 bits: 0 becomes 255."""
    return [label - np.uint8(1) for label in labels]


def mostly_zero(classes: int, files: int = 10) -> List[np.ndarray]:
    """A background that fills about half of each file, and regions of the other classes in it."""
    drawn = scenes(range(classes), files)
    for number, label in enumerate(drawn):
        label[: 20 + number] = 0
    return drawn


def noisy(label: np.ndarray, quality: int = 75) -> np.ndarray:
    """What a JPEG in between made of it."""
    import io

    file = io.BytesIO()
    Image.fromarray(label).save(file, format='JPEG', quality=quality)
    return np.asarray(Image.open(file))


def jpegs(labels: Sequence[np.ndarray], classes: Any) -> Build:
    def build(root: Path) -> Any:
        save(root / 'masks', labels, ending='.jpg', quality=80)
        return root / 'masks', dict(num_classes=classes)

    return build


SLIPS: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#42': Kind(
        'an annotator typed a wrong name: 10 in two files of twelve, ten classes',
        ('MG127',),
        seg_config(patched(10, 10, 12, (3, 8), (12, 25)), TEN, seg_model(10)),
        ('003.png', '008.png', 'slip'),
        ('{10: 255}',),
        ('num_classes=11',),
    ),
}

SHIFTED: Dict[str, Kind] = {
    'Pytorch-UNet#258': Kind(
        'three classes and the background, all of them in every file: the background was not counted',
        ('MG102',),
        masks(scenes(range(4), 12), 3),
        (),
        ('num_classes=4',),
    ),
    'five classes, background first': Kind(
        '0..4 stored as 255, 0..3',
        ('MG133',),
        seg_config(subtracted(mostly_zero(5)), FIVE, seg_model(5)),
        ('4', 'subtract'),
        ('255: 0',),
    ),
    'three classes, without names': Kind(
        '0..2 stored as 255, 0, 1', ('MG133',), masks(subtracted(mostly_zero(3)), 3), ('subtract',), ('255: 0',)
    ),
    'near: void and a class that is rare': Kind(
        'void is drawn around things, and the last class is in none of a few files',
        ('MG100',),
        masks([scene(range(5), n, border=VOID) for n in range(8)], 6),
    ),
    'near: much void, all classes there': Kind(
        'nearly half is unlabelled, and every class occurs',
        ('MG100',),
        masks([np.where(label == 0, VOID, label - 1).astype(np.uint8) for label in mostly_zero(6)], 5),
    ),
}

KNOWN_IDS: Dict[str, Kind] = {
    'LiheYoung/FreeMask#4': Kind(
        'raw COCO-Stuff ids, nobody said how many classes there are',
        ('MG117',),
        masks(of_ids(COCO_STUFF_IDS, 20, 9), None),
        ('COCO', '171'),
    ),
    'COCO-Stuff, 150 classes': Kind(
        'the table of ADE for ids of COCO-Stuff',
        ('MG117',),
        masks(of_ids(COCO_STUFF_IDS, 20, 9), 150),
        ('COCO',),
        (),
        ('num_classes=182',),
    ),
    'fyu/drn#9': Kind(
        'raw Cityscapes ids under names of their own, 19 classes', ('MG101',), renamed_cityscapes(19), ('Cityscapes',)
    ),
    'ADE20K full for 847 classes': Kind(
        '847 classes need more than 8 bits', ('MG122',), wide_ids(847, 847), ('ADE20K full', 'do not fit'), ('int64',)
    ),
    'near: 66 classes of Mapillary': Kind('all right', ('MG100',), masks(of_ids(range(66), 14, 12), 66)),
    'near: 171 train ids': Kind('all right', ('MG100',), masks(of_ids(range(171), 24, 12), 171)),
}

BINARY: Dict[str, Kind] = {
    'masks as JPEG': Kind(
        'two peaks with noise between them', ('MG136',), jpegs(blobs(VOID, 8), 2), (), ('threshold',), (': 255}',)
    ),
}

KINDS: Dict[str, Kind] = {
    f'{row}: {name}': kind
    for row, table in dict(slip=SLIPS, shifted=SHIFTED, ids=KNOWN_IDS, binary=BINARY).items()
    for name, kind in table.items()
}
