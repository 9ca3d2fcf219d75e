"""Kinds of causes in boxes, images, masks and old configs, written down before any scan was run on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import numpy as np
from detection_configs import NAMES, PETS
from kinds_classes import CHECK, FOUR, Asked
from situation import (
    CE,
    Build,
    coco_config,
    faster,
    json_alone,
    retina,
    seg_model,
    some_boxes,
    write_config,
)


def small_boxes(images: int = 12, right: float = 0.3) -> List[List[Any]]:
    """Corners in 320 x 240; only some of them reach outside when they are read as x, y, width, height."""
    random = np.random.default_rng(1)
    drawn = []
    for _ in range(images):
        boxes = []
        for _ in range(4):
            far = random.random() < right
            x, y = (
                (int(random.integers(170, 200)), int(random.integers(5, 60)))
                if far
                else (
                    int(random.integers(4, 70)),
                    int(random.integers(4, 50)),
                )
            )
            boxes.append((1, [x, y, x + int(random.integers(15, 80)), y + int(random.integers(15, 60))]))
        drawn.append(boxes)
    return drawn


def with_masks(model: Any, **annotation: Any) -> Build:
    loads = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
    return coco_config(PETS, NAMES, model, settings=dict(pipeline=loads), annotation=annotation)


def with_maps(prefix: Any) -> Build:
    """A panoptic training: boxes, and a map of stuff."""
    loads = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True, with_seg=True)]
    return coco_config(PETS, NAMES, retina(3), settings=dict(pipeline=loads, data_prefix=dict(img='', **prefix)))


def alone(build: Build) -> Build:
    """The config is the target of check: without options."""

    def rebuilt(root: Path) -> Path:
        path, _ = build(root)
        return path

    return rebuilt


def old(model: Any, wrapper: bool = False, scope: str = 'det', **data: Any) -> Build:
    """A config of MMDetection 2.x or MMSegmentation 0.x."""

    def build(root: Path) -> Path:
        kind = dict(type='CocoDataset' if scope == 'det' else 'CustomDataset', pipeline=[])
        leaf = {**kind, 'ann_file': str(root / 'train.json'), **({} if wrapper else data)}
        train = dict(type='RepeatDataset', times=2, dataset=leaf, **data) if wrapper else leaf
        splits = dict(train=train, val={**leaf, **data})
        return write_config(root, model=model, data=dict(samples_per_gpu=2, workers_per_gpu=2, **splits))

    return build


POLYGON = dict(segmentation=[[10, 10, 60, 10, 60, 60]])

BOXES: Dict[str, Asked] = {
    'COCO: below 0': Asked(
        'a slip',
        ('MG152',),
        json_alone({0: 'cat'}, 1, [[(0, [-7, 20, 50, 50])], *some_boxes([0])]),
        says=('0000.jpg: -7, 20',),
        never=('minus-one',),
    ),
}
FORMATS: Dict[str, Asked] = {
    'corners, a third visible': Asked(
        'x1, y1, x2, y2', ('MG172',), json_alone(FOUR, 5, small_boxes()), says=('corners',), never=('clamps', 'leaves')
    ),
    'near: two of many': Asked(
        'slips',
        ('MG109',),
        json_alone({0: 'cat'}, 1, [[(0, [330, 40, 20, 20])], *some_boxes([0], 40)]),
        first=('leaves',),
    ),
    'near: one over the edge': Asked(
        'a slip', (), json_alone({0: 'cat'}, 1, [[(0, [300, 40, 23, 20])], *some_boxes([0], 60)])
    ),
}
INPUTS: Dict[str, Asked] = {
    'with_mask, boxes alone': Asked('no mask anywhere', ('MG179',), with_masks(faster(3)), says=('there is no mask',)),
    'near: polygons': Asked('as asked', (), with_masks(faster(3), **POLYGON)),
    'near: a map per image': Asked('as asked', (), alone(with_maps(dict(seg='stuff/'))), CHECK),
}
OLD: Dict[str, Asked] = {
    'mmseg: weights': Asked(
        'five classes, four weights',
        ('MG207',),
        old(
            seg_model(5, dict(loss_decode={**CE, 'class_weight': [1.0] * 4})),
            scope='seg',
            classes=('a', 'b', 'c', 'd', 'e'),
        ),
        CHECK,
    ),
    'near: merely old': Asked('nothing else', ('MG227',), old(retina(3), classes=NAMES), CHECK),
}
KINDS = {
    f'{kind}: {name}': one
    for kind, table in (
        ('boxes', BOXES),
        ('formats', FORMATS),
        ('inputs', INPUTS),
        ('old', OLD),
    )
    for name, one in table.items()
}
