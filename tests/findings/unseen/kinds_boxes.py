"""Kinds of causes in boxes, images, masks and old configs, written down before any scan was run on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List, Sequence

import numpy as np
from detection_configs import NAMES, PETS
from kinds_classes import CHECK, FOUR, Asked
from PIL import Image
from situation import (
    CE,
    Boxes,
    Build,
    coco_config,
    coco_data,
    faster,
    json_alone,
    retina,
    seg_model,
    some_boxes,
    voc_config,
    with_options,
    write_config,
)


def voc_boxes(*odd: Sequence[int]) -> List[Any]:
    return [[('cat', list(box))] for box in odd] + [[('cat', [10 + k, 20, 90, 110])] for k in range(8)]


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


def centred(boxes: List[Boxes]) -> List[Boxes]:
    return [[(i, [x + w / 2, y + h / 2, w, h]) for i, (x, y, w, h) in image] for image in boxes]


def with_masks(model: Any, **annotation: Any) -> Build:
    loads = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
    return coco_config(PETS, NAMES, model, settings=dict(pipeline=loads), annotation=annotation)


def with_masks_of_voc(root: Path) -> Any:
    loads = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
    data = {**coco_data(root, ('cat',)), 'type': 'VOCDataset', 'pipeline': loads}
    return write_config(root, default_scope='mmdet', model=faster(1), train_dataloader=dict(dataset=data)), {}


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


def turned(build: Build, orientation: int, every: int = 1) -> Build:
    """The photographs get an EXIF tag; the JSON keeps the sizes as they are stored."""

    def rebuilt(root: Path) -> Any:
        found = build(root)
        for place, path in enumerate(sorted(root.rglob('*.jpg'))):
            if place % every == 0:
                exif = Image.Exif()
                exif[0x0112] = orientation
                Image.open(path).save(path, exif=exif)
        return found

    return rebuilt


def _with_images(build: Build) -> Build:
    def rebuilt(root: Path) -> Any:
        path, options = build(root)
        return path, {**options, 'images': str(Path(path).parent)}

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


def mask2former(classes: int, weights: Any) -> Dict[str, Any]:
    loss = dict(type='CrossEntropyLoss', class_weight=weights)
    head = dict(type='Mask2FormerHead', num_things_classes=classes, num_stuff_classes=0, loss_cls=loss)
    return dict(type='Mask2Former', panoptic_head=head)


POLYGON = dict(segmentation=[[10, 10, 60, 10, 60, 60]])

BOXES: Dict[str, Asked] = {
    'VOC: below -1': Asked(
        'slips below 0',
        ('MG152',),
        voc_config(voc_boxes((-5, 10, 108, 51), (75, -8, 108, 45)), ('cat',), faster(1)),
        says=('000000.xml: ',),
        never=('minus-one',),
    ),
    'VOC: 0 is written': Asked(
        'counts from 0', ('MG152',), voc_config(voc_boxes((0, 0, 108, 51)), ('cat',), faster(1)), says=('minus-one',)
    ),
    'COCO: below 0': Asked(
        'a slip',
        ('MG152',),
        json_alone({0: 'cat'}, 1, [[(0, [-7, 20, 50, 50])], *some_boxes([0])]),
        says=('0000.jpg: -7, 20',),
        never=('minus-one',),
    ),
    'COCO: -1': Asked(
        'no minus-one in COCO',
        ('MG152',),
        json_alone({0: 'cat'}, 1, [[(0, [-1, -1, 50, 50])], *some_boxes([0])]),
        says=('0000.jpg: -1, -1',),
        never=('minus-one',),
    ),
    'VOC: no area': Asked(
        'a line', ('MG109',), voc_config(voc_boxes((10, 20, 10, 80)), ('cat',), faster(1)), says=('000000.xml: ',)
    ),
}
FORMATS: Dict[str, Asked] = {
    'corners, a third visible': Asked(
        'x1, y1, x2, y2', ('MG172',), json_alone(FOUR, 5, small_boxes()), says=('corners',), never=('clamps', 'leaves')
    ),
    'corners, a tenth visible': Asked(
        'x1, y1, x2, y2', ('MG172',), json_alone(FOUR, 5, small_boxes(20, 0.1)), never=('clamps', 'leaves')
    ),
    'centres': Asked(
        'the centre comes first',
        ('MG152', 'MG109'),
        json_alone(PETS, 4, centred(some_boxes([1, 2, 3]))),
        first=('centre',),
        never=('clamps', 'leaves them out'),
    ),
    'centres, a few visible': Asked(
        'the centre comes first',
        ('MG152', 'MG109'),
        json_alone(PETS, 4, centred(some_boxes([1, 2, 3])) + centred([[(1, [20 + i, 30, 40, 50])] for i in range(60)])),
        first=('centre',),
        never=('clamps', 'leaves them out'),
    ),
    'VOC: widths for corners': Asked(
        'x, y, width, height in XML',
        ('MG109',),
        voc_config([[('cat', [60 + 9 * k, 60, 100, 90])] for k in range(12)], ('cat',), faster(1)),
        first=('width and height',),
        never=('leaves them out',),
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
    'with_seg, no folder named': Asked('KeyError seg_map_path', ('MG245',), alone(with_maps({})), CHECK, ('seg',)),
    'with_seg, scanned': Asked('KeyError seg_map_path', ('MG245',), with_maps({}), says=('with_seg',)),
    'with_seg, an empty folder': Asked(
        'no such maps', ('MG245', 'MG176', 'MG151'), with_maps(dict(seg='stuff/')), says=('stuff',)
    ),
    'with_mask, boxes alone': Asked('no mask anywhere', ('MG179',), with_masks(faster(3)), says=('there is no mask',)),
    'with_mask, VOC': Asked(
        'XML holds boxes',
        ('MG245',),
        alone(with_masks_of_voc),
        CHECK,
        ('with_mask',),
    ),
    'near: polygons': Asked('as asked', (), with_masks(faster(3), **POLYGON)),
    'near: a map per image': Asked('as asked', (), alone(with_maps(dict(seg='stuff/'))), CHECK),
}
EXIF: Dict[str, Asked] = {
    'a quarter, sizes as stored': Asked(
        'loaders turn them', ('MG175',), turned(coco_config(PETS, NAMES, retina(3)), 6), says=('EXIF',)
    ),
    'some of them': Asked(
        'loaders turn them', ('MG175',), turned(coco_config(PETS, NAMES, retina(3)), 8, 3), says=('EXIF',)
    ),
    'upside down, DETR': Asked(
        'pillow does not turn what was annotated turned',
        ('MG175',),
        _with_images(turned(with_options(json_alone(PETS, 4), framework='rt-detr'), 3)),
        says=('EXIF',),
    ),
    'a quarter, sizes as shown, DETR': Asked(
        'the same',
        ('MG175',),
        _with_images(turned(with_options(json_alone(PETS, 4, on_disk=(240, 320)), framework='torchvision'), 6)),
        says=('EXIF',),
    ),
    'near: upright': Asked('the tag says so', (), turned(coco_config(PETS, NAMES, retina(3)), 1)),
    'near: upside down, mmdet': Asked('mmcv turns them', (), turned(coco_config(PETS, NAMES, retina(3)), 3)),
}
OLD: Dict[str, Asked] = {
    'weights of 80': Asked(
        'class_weight of COCO',
        ('MG207',),
        old(mask2former(1, [1.0] * 80 + [0.1]), classes=('building',)),
        CHECK,
        first=('class_weight=[1.0, 0.1]',),
    ),
    'classes at the wrapper': Asked(
        'RepeatDataset takes none',
        ('MG203',),
        old(retina(1), True, classes=('ship',)),
        CHECK,
        first=('data.train.dataset',),
    ),
    'heads of 80': Asked(
        'the head kept 80', ('MG201',), old(retina(80), classes=NAMES), CHECK, first=('num_classes=3',)
    ),
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
        ('exif', EXIF),
        ('old', OLD),
    )
    for name, one in table.items()
}
