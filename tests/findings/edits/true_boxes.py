"""Where the objects really are, in the pixels of the pictures, written down before any edit was tried on them."""

from __future__ import annotations

from typing import Dict, List, Tuple

from annotation_files import VOC_GOOD
from situation import some_boxes

Box = Tuple[float, ...]
Boxes = List[List[Box]]


def of_voc(*before: List[Box]) -> Boxes:
    """Pictures of one situation, then those that all have."""
    return [*before, *([tuple(box) for _, box in image] for image in VOC_GOOD)]


COCO = [[(x, y, x + w, y + h) for _, (x, y, w, h) in image] for image in some_boxes([0, 1, 2])]

#: Of each picture its objects, left, top, right, bottom.
TRUE_BOXES: Dict[str, Boxes] = {
    'annotation_files: boxes are corners': COCO,
    'annotation_files: boxes are normalised': COCO,
    'annotation_files: boxes of texts': COCO,
    'annotation_files: VOC: corners count from 0': of_voc([(0, 0, 80, 90)]),
    'annotation_files: VOC: normalised corners': [[(32, 48, 160, 168), (96, 24, 288, 192)]] * 6,
    'detection_configs: boxes are corners': COCO,
    'detection_configs: boxes are normalised': COCO,
    'annotation_files: pytorch/vision#1128': [[(120, 90, 160, 150), (30, 120, 180, 190)]] * 6,
}
