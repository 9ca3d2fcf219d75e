"""Kinds of causes in the values of label maps: each reported once, and drawn again with other values and sizes.

Written down with their causes before any scan was run on them. ``near`` names what looks alike and is another thing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np
from drawn_scenes import VOID, blob, each, photo, save, scene, scenes
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


def nearly_black_and_white(files: int) -> List[np.ndarray]:
    """A few values beside 0 and 255, as good JPEGs leave them."""
    random = np.random.default_rng(3)
    drawn = blobs(VOID, files)
    for label in drawn:
        low, high = np.flatnonzero(label == 0), np.flatnonzero(label == VOID)
        label.flat[random.choice(low, 60)] = random.integers(1, 4, 60)
        label.flat[random.choice(high, 40)] = random.integers(252, 255, 40)
    return drawn


SLIPS: Dict[str, Kind] = {
    'open-mmlab/mmsegmentation#42': Kind(
        'an annotator typed a wrong name: 10 in two files of twelve, ten classes',
        ('MG127',),
        seg_config(patched(10, 10, 12, (3, 8), (12, 25)), TEN, seg_model(10)),
        ('003.png', '008.png', 'slip'),
        ('{10: 255}',),
        ('num_classes=11',),
    ),
    'one file of fifteen, three classes': Kind(
        'a brush with the wrong number in one file',
        ('MG127',),
        masks(patched(3, 3, 15, (6,), (15, 20)), 3),
        ('006.png', 'slip'),
        ('3: 255',),
        ('num_classes=4',),
    ),
    'three of forty, seven classes': Kind(
        'a wrong number in three files',
        ('MG127',),
        masks(patched(7, 7, 40, (5, 11, 30), (18, 20)), 7),
        ('005.png', '011.png', '030.png'),
        ('7: 255',),
        ('num_classes=8',),
    ),
    'in the validation alone': Kind(
        'one file of the twelve of the validation',
        ('MG127',),
        seg_config(
            scenes(range(5), 12),
            FIVE,
            seg_model(5),
            val=patched(5, 5, 12, (7,), (10, 20)),
            look_at='val',
        ),
        ('007.png',),
        (),
        ('num_classes=6',),
    ),
    'near: a class that nobody listed': Kind(
        'the sixth class, in seven of twelve files', ('MG102', 'MG215'), masks(scenes(range(6), 12, keep=0.6), 5)
    ),
    'near: two of three files': Kind(
        'nothing is few among three files', ('MG102',), masks(patched(4, 4, 3, (0, 2), (12, 20)), 4)
    ),
    'near: CamVid, void behind the classes': Kind(
        '11 is void in every file of 11 classes',
        ('MG102',),
        masks([scene(range(12), n, border=11) for n in range(20)], 11),
        (),
        ('11: 255',),
    ),
}

SHIFTED: Dict[str, Kind] = {
    'facebookresearch/Mask2Former#143': Kind(
        'background 0 and target 1, 1 subtracted when the files were made: 255 and 0',
        ('MG103', 'MG133'),
        masks(subtracted(blobs(1, 10)), 2),
        ('subtract',),
        ('255: 0', '0: 1'),
        ('Your labels are fine',),
    ),
    'Pytorch-UNet#258': Kind(
        'three classes and the background, all of them in every file: the background was not counted',
        ('MG102',),
        masks(scenes(range(4), 12), 3),
        (),
        ('num_classes=4',),
    ),
    'Mask2Former#143, one class': Kind(
        'the same, and the background is not counted',
        ('MG103',),
        masks(subtracted(blobs(1, 10)), 1),
        ('subtract',),
        ('0: 1, 255: 0', 'num_classes=2'),
        ('Your labels are fine',),
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
    'twelve classes': Kind(
        '0..11 stored as 255, 0..10',
        ('MG133',),
        masks(subtracted(mostly_zero(12, 20)), 12),
        ('subtract',),
        ('255: 0',),
    ),
    'in a config, binary': Kind(
        'crack masks: 255 and 0',
        ('MG103', 'MG133'),
        seg_config(subtracted(blobs(1, 12)), ['background', 'crack'], seg_model(2)),
        ('subtract',),
        ('255: 0',),
    ),
    'near: masks drawn in black and white': Kind(
        '255 is the object', ('MG103',), masks(blobs(VOID, 10), 2), (), ('{255: 1}',), ('255: 0',)
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
    'COCO-Stuff, 183 classes': Kind(
        'as many classes as make it run: eleven of them never occur',
        ('MG117',),
        masks(of_ids(COCO_STUFF_IDS, 24, 12), 183),
        ('COCO',),
    ),
    'COCO-Stuff from 1': Kind(
        'the ids themselves, 1..182, 171 classes', ('MG117',), masks(of_ids(COCO_STUFF_IDS, 20, 9, 1), 171), ('COCO',)
    ),
    'fyu/drn#9': Kind(
        'raw Cityscapes ids under names of their own, 19 classes', ('MG101',), renamed_cityscapes(19), ('Cityscapes',)
    ),
    'Cityscapes, nothing said': Kind(
        'raw Cityscapes ids, no number of classes', ('MG101',), renamed_cityscapes(None), ('Cityscapes',)
    ),
    'Cityscapes, 20 classes': Kind(
        'raw Cityscapes ids, void counted as a class', ('MG101',), renamed_cityscapes(20), ('Cityscapes',)
    ),
    'Pascal Context, 59 classes': Kind(
        '0..59 with 0 for no class: reduce_zero_label is missing',
        ('MG102', 'MG119'),
        masks([scene([*range(k % 6, 60, 6), 59, 0], k) for k in range(12)], 59),
        (),
        ('reduce_zero_label=True',),
        ('num_classes=60',),
    ),
    'Mapillary, 65 classes': Kind(
        '65 is unlabelled in Mapillary Vistas',
        ('MG102',),
        masks([scene([*range(k % 6, 65, 6), 65], k) for k in range(12)], 65),
        (),
        ('65: 255',),
    ),
    'Mapillary, 65 classes, one of which no file holds': Kind(
        '65 is unlabelled in Mapillary Vistas; 1 never occurs',
        ('MG102',),
        masks([scene([0, *range(2 + k % 6, 65, 6), 65], k) for k in range(12)], 65),
        (),
        ('65: 255',),
    ),
    'Mapillary 1.2 for 19 classes': Kind(
        'its numbers mean other classes, below 19, too',
        ('MG107',),
        masks(of_ids(range(66), 14, 12), 19),
        ('Mapillary Vistas 1.2', 'no label is right'),
        ('label_map=',),
        ('num_classes=66',),
    ),
    'Mapillary 1.2, plus 1, for 19 classes': Kind(
        'the same shifted', ('MG107',), masks(of_ids(range(1, 67), 14, 12), 19), ('Mapillary Vistas 1.2',)
    ),
    'Mapillary 2.0 for 65 classes': Kind(
        'the numbers of another version', ('MG107',), masks(of_ids(range(124), 20, 30), 65), ('Mapillary Vistas 2.0',)
    ),
    'ADE20K full for 847 classes': Kind(
        '847 classes need more than 8 bits', ('MG122',), wide_ids(847, 847), ('ADE20K full', 'do not fit'), ('int64',)
    ),
    'ADE20K full for 150 classes': Kind(
        '847 numbers for 150 classes', ('MG122',), wide_ids(847, 150), ('ADE20K full',)
    ),
    'near: 66 classes of Mapillary': Kind('all right', ('MG100',), masks(of_ids(range(66), 14, 12), 66)),
    'near: 171 train ids': Kind('all right', ('MG100',), masks(of_ids(range(171), 24, 12), 171)),
    'near: 182 classes of somebody else': Kind(
        'a list of 182 with nothing missing', ('MG100',), masks(of_ids(range(182), 24, 12), 182)
    ),
    'near: 34 classes': Kind(
        '34 classes of a city, all of them trained', ('MG100',), masks(of_ids(range(34), 12, 12), 34)
    ),
}

BINARY: Dict[str, Kind] = {
    'LiheYoung/UniMatch#29': Kind(
        '0 and 255, and 255 is ignored; nobody said how many classes',
        ('MG103',),
        masks(blobs(VOID, 10), None),
        (),
        ('255: 1',),
    ),
    'masks as JPEG': Kind(
        'two peaks with noise between them', ('MG136',), jpegs(blobs(VOID, 8), 2), (), ('threshold',), (': 255}',)
    ),
    'PNG after JPEG': Kind(
        'the same, saved as PNG',
        ('MG136', 'MG106', 'MG103'),
        masks(each(blobs(VOID, 8), noisy), 2),
        (),
        ('threshold',),
        (': 255}',),
    ),
    'PNG after JPEG, nothing said': Kind(
        'the same without a number of classes',
        ('MG136', 'MG106', 'MG103'),
        masks(each(blobs(VOID, 8), noisy), None),
        (),
        ('threshold',),
        (': 255}',),
    ),
    'JPEG, nothing said': Kind(
        'JPEG without a number of classes',
        ('MG136', 'MG106', 'MG103'),
        jpegs(blobs(VOID, 8), None),
        (),
        ('threshold',),
        (': 255}',),
    ),
    'one class, PNG after JPEG': Kind(
        'the same with one class of a sigmoid',
        ('MG136', 'MG106', 'MG103'),
        masks(each(blobs(VOID, 8), noisy), 1),
        (),
        ('threshold',),
        (': 255}',),
    ),
    'hardly any noise': Kind(
        '0..3 and 252..255',
        ('MG136', 'MG106', 'MG103', 'MG107'),
        masks(nearly_black_and_white(8), 2),
        (),
        ('threshold',),
        (': 255}',),
    ),
    'a small object, PNG after JPEG': Kind(
        'the object fills 2 % of the files',
        ('MG136', 'MG106', 'MG103'),
        masks(each([blob(VOID, 0, n, 5.0) for n in range(8)], noisy), 2),
        (),
        ('threshold',),
        (': 255}',),
    ),
    'near: three levels': Kind(
        'background, unknown, object', ('MG125',), masks(scenes([0, 128, 255], 6), 3), (), (), ('threshold',)
    ),
    'near: photographs in gray': Kind(
        'no masks at all',
        ('MG131', 'MG106', 'MG136'),
        masks([photo(n)[..., 0] for n in range(8)], 4),
        (),
        (),
        ('--threshold',),
    ),
}

KINDS: Dict[str, Kind] = {
    f'{row}: {name}': kind
    for row, table in dict(slip=SLIPS, shifted=SHIFTED, ids=KNOWN_IDS, binary=BINARY).items()
    for name, kind in table.items()
}
