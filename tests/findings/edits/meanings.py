"""Meanings of the values of label maps, and places of objects, written down before any edit was tried on them.

Forbidden outcomes follow: no void value may be trained as a class, no class ignored, no two swapped or made one.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, NamedTuple, Sequence, Tuple, Union

import numpy as np
from annotation_files import VOC_GOOD
from drawn_scenes import VOID
from mask_files import STREET, VOC_COLORS
from mask_values import CITYSCAPES_IDS
from real_reports import COLORS
from situation import some_boxes


class Means(NamedTuple):
    """Meaning of stored values (a color: ``R << 16 | G << 8 | B``); other values may mean anything."""

    #: Value, or values that mean the same; in the order of their labels.
    classes: Tuple[Union[float, Tuple[float, ...]], ...]
    void: Tuple[int, ...] = ()  #: Values that teach no class: void, and annotation mistakes.


def rgb(*colors: Sequence[int]) -> Tuple[int, ...]:
    return tuple(color[0] << 16 | color[1] << 8 | color[2] for color in colors)


def first(number: int, *void: int) -> Means:
    """0 .. N-1."""
    return Means(tuple(range(number)), void)


def from_one(number: int, *void: int) -> Means:
    """1 .. N."""
    return Means(tuple(range(1, number + 1)), void)


def grays(values: Iterable[int]) -> Means:
    return Means(rgb(*((value,) * 3 for value in values)))


def fractions(values: Iterable[int]) -> Tuple[float, ...]:
    """Divided by 255, in 32 bits."""
    return tuple(float(np.float32(value) / np.float32(255)) for value in values)


def of_cityscapes(values: Iterable[int]) -> Means:
    """Raw ids: 19 of them are classes."""
    found = set(values)
    return Means(tuple(id_ for id_ in CITYSCAPES_IDS if id_ in found), tuple(sorted(found - set(CITYSCAPES_IDS))))


BINARY = Means((0, 255))
ADE = Means(tuple(range(1, 151)), (0,))

MEANS: Dict[str, Means] = {
    'mask_files: probabilities': Means((fractions(range(128)), fractions(range(128, 256)))),
    'mask_values: SegmentationBLWX/sssegmentation#48': first(2),
    'mask_values: counts from 1, no 0': from_one(6),
    'mask_values: counts from 1, 0 is no data': from_one(7, 0),
    'mask_values: a subset of ids, not renumbered': Means((0, 7, 15)),
    'mask_values: void minus one': first(4, 254),
    'mask_values: VOC borders under ignore_index=0': Means((5, 12, 15, 20), (VOID,)),
    'mask_values: half of the files are void': first(3, VOID),
    'mask_values: two voids': first(4, 254, VOID),
    'mask_files: milesial/Pytorch-UNet#311': Means((0, 5, 12, 20), tuple(range(21, 256))),
    'mask_files: 16 bits, 0 and 65535': Means((0, 65535)),
    'mask_files: 4-bit files': Means(tuple(17 * value for value in range(5))),
    'mask_files: other size': first(5),
    'mask_files: EXIF': first(5),
    'mask_files: cut off': first(5),
    'mask_files: some labels are missing': first(5),
    'mask_files: case of names': first(5),
    'mask_files: labels of half of the set drawn in 255': Means(
        (0, *((value, *rgb(VOC_COLORS[value])) for value in range(1, 5)))
    ),
    'segmentation_configs: open-mmlab/mmsegmentation#855': from_one(7, 0),
    'segmentation_configs: open-mmlab/mmsegmentation#1553': first(16),
    'segmentation_configs: class weights of Cityscapes kept': first(5),
    'segmentation_configs: the -1 workaround': first(5),
    'segmentation_configs: ignore_index is a class': from_one(4),
    'segmentation_configs: padding is a class': first(5),
    'segmentation_configs: ADE20K, reduce_zero_label forgotten': ADE,
    'segmentation_configs: training fine, validation counts from 1': from_one(5),
    'segmentation_configs: names in another order for the validation': first(5),
    'segmentation_configs: wrong seg_map_suffix': first(5),
    'segmentation_configs: auxiliary head of another ignore_index': first(5, VOID),
    'reports: mmsegmentation#3574': first(8, VOID),
    'reports: mmsegmentation#1609': BINARY,
    'reports: LiheYoung/UniMatch#29': BINARY,
    'reports: mmsegmentation#3617': grays([0, 255]),
    'reports: mmsegmentation#1719': Means((0, 38)),
    'reports: tensorflow/models#3739': Means((0, 128)),
    'reports: mmsegmentation#970': Means(rgb(*COLORS[:2])),
    'reports: mmsegmentation#1488': Means(rgb(*COLORS[:5])),
    'reports: NVlabs/SegFormer#92': Means((0, 60, 120, 180)),
    'reports: fyu/drn#9': of_cityscapes(range(34)),
    'reports: mmsegmentation#789': first(4),
    'reports: mmsegmentation#566': first(2),
    'reports: mmsegmentation#578': first(4, VOID),
    'reports: milesial/Pytorch-UNet#258': first(4),
    'reports: mmsegmentation#3609': first(2, 7),
    'reports: mmsegmentation#2146': first(7),
    'reports: mmsegmentation#1714': first(3),
    'reports: ViTAE-Transformer/ViTAE-Transformer-Remote-Sensing#9': from_one(6),
    'reports: hszhao/semseg#29': Means(rgb(STREET[0], STREET[2])),
    'reports: chenxi116/DeepLabv3.pytorch#17': of_cityscapes(range(34)),
    'reports: XuJiacong/PIDNet#65': first(2, VOID),
    'reports: pytorch/pytorch#63004': Means((1, 2)),
    'reports: pytorch/pytorch#53959': Means(fractions(range(4))),
    'reports: alexgkendall/SegNet-Tutorial#161': first(2),
    'reports: divamgupta/image-segmentation-keras#117': first(4),
}

Box = Tuple[float, ...]
Boxes = List[List[Box]]


def of_voc(*before: List[Box]) -> Boxes:
    """Pictures of one situation, then those that all have."""
    return [*before, *([tuple(box) for _, box in image] for image in VOC_GOOD)]


COCO = [[(x, y, x + w, y + h) for _, (x, y, w, h) in image] for image in some_boxes([0, 1, 2])]

#: Of each picture its objects, left, top, right, bottom.
TRUE_BOXES: Dict[str, Boxes] = {
    'annotation_files: boxes of texts': COCO,
    'annotation_files: VOC: corners count from 0': of_voc([(0, 0, 80, 90)]),
    'annotation_files: VOC: normalised corners': [[(32, 48, 160, 168), (96, 24, 288, 192)]] * 6,
    'detection_configs: boxes are corners': COCO,
    'detection_configs: boxes are normalised': COCO,
    'annotation_files: pytorch/vision#1128': [[(120, 90, 160, 150), (30, 120, 180, 190)]] * 6,
}
