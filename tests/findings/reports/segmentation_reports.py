"""Reports about pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy as np
from drawn_scenes import VOID, blob, coloured, each, save, scenes
from mask_values import blobs
from report import CHECK, Report
from situation import CE, masks, seg_config, seg_model

WHITE = [(0, 0, 0), (255, 255, 255)]
COLOURS = [(0, 0, 0), (0, 255, 255), (255, 0, 0), (153, 76, 0), (0, 153, 0), (9, 9, 200), (200, 9, 200), (90, 90, 90)]


def names(number: int) -> tuple:
    return tuple(f'class {i}' for i in range(number))


def weighted(number: int, weights: int, **more: Any) -> Dict[str, Any]:
    return seg_model(number, dict(loss_decode={**CE, 'class_weight': [1.0 + i / 10 for i in range(weights)]}, **more))


def config(values: Any, number: int, model: Any = None, **more: Any) -> Any:
    return seg_config(scenes(values, 6), names(number), model or seg_model(number), **more)


def mask2former(classes: int, weights: Any) -> Dict[str, Any]:
    loss = dict(type='mmdet.CrossEntropyLoss', class_weight=weights)
    head = dict(type='Mask2FormerHead', num_classes=classes, loss_cls=loss)
    return dict(type='EncoderDecoder', decode_head=head, data_preprocessor=dict(type='SegDataPreProcessor'))


def gray(colours: Any) -> Any:
    return lambda label: (coloured(label, colours) @ [0.299, 0.587, 0.114]).round().astype(np.uint8)


def stray(value: int, classes: int) -> Any:
    drawn = scenes(range(classes), 30)
    for label in drawn[:2]:
        label[5:9, 5:9] = value
    return drawn


def gray_alpha(root: Path) -> Any:
    from PIL import Image

    (root / 'masks').mkdir()
    for number, label in enumerate(scenes(range(0, 180, 9), 5)):
        alpha = np.full_like(label, 255)
        Image.fromarray(np.stack([label, alpha], -1), 'LA').save(root / f'masks/{number}.png')
    return root / 'masks', dict(num_classes=182)


def palette_as_gray(root: Path) -> Any:
    """What ``convert('L')`` makes of palette files."""
    palette = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
    save(root / 'masks', each(scenes(range(4), 6), gray(palette)))
    return root / 'masks', dict(num_classes=4)


IGNORING_ONE = dict(ignore_index=100)
REDUCED = dict(reduce_zero_label=True)
HIDES = ('num_classes=255', 'num_classes=256', 'ignore_index=-1`')

REPORTS: Dict[str, Report] = {
    'mmsegmentation#3864': Report(('MG214',), config([0, 1], 2, weighted(2, 2)), CHECK, HIDES),
    'mmsegmentation#3831': Report(('MG214',), config(range(6), 6, weighted(6, 6)), CHECK, HIDES),
    'mmsegmentation#3724': Report(('MG214',), config([*range(19), VOID], 19, weighted(19, 19)), CHECK, HIDES),
    'mmsegmentation#3568': Report(('MG214',), config(range(4), 4, weighted(4, 4)), CHECK, HIDES),
    'mmsegmentation#980': Report(('MG207',), config(range(5), 5, weighted(5, 7)), CHECK),
    'mmsegmentation#3811': Report(('MG207',), config(range(3), 3, mask2former(3, [0.1, 1.0, 1.0])), CHECK),
    'mmsegmentation#2607': Report(
        ('MG240', 'MG215'),
        config([0, 1], 2, seg_model(2, dict(out_channels=1, sampler=dict(type='OHEMPixelSampler', thresh=0.7)))),
        CHECK,
    ),
    'mmsegmentation#2201': Report(('MG206', 'MG215'), config([0, 1], 2, seg_model(2, dict(out_channels=1))), CHECK),
    'mmsegmentation#3080': Report(('MG206', 'MG215'), config([0, 1], 1, seg_model(1)), CHECK),
    'mmsegmentation#1180': Report(
        ('MG103',), seg_config(blobs(255, 6), names(2), seg_model(2, dict(sampler=dict(type='OHEMPixelSampler'))))
    ),
    'mmsegmentation#1609': Report(
        ('MG103',), seg_config(blobs(255, 6), names(2), seg_model(2)), never=('reduce_zero',)
    ),
    'mmsegmentation#3753': Report(('MG103',), seg_config(blobs(255, 6), names(2), seg_model(2))),
    'mmsegmentation#3617': Report(('MG120', 'MG103'), masks(each(blobs(1, 6), lambda x: coloured(x, WHITE)), 2)),
    'mmsegmentation#1553': Report(('MG106', 'MG121'), masks(scenes([0, 38, 75, 113], 6), 2), never=HIDES),
    'mmsegmentation#1719': Report(
        ('MG121', 'MG125'), masks([np.where(x, 38, 0).astype(np.uint8) for x in blobs(1, 6)], 2)
    ),
    'mmsegmentation#1488': Report(('MG120',), masks(each(scenes(range(5), 6), lambda x: coloured(x, COLOURS)), 5)),
    'mmsegmentation#2471': Report(('MG120',), masks(each(scenes(range(8), 6), lambda x: coloured(x, COLOURS)), 8)),
    'mmsegmentation#970': Report(('MG120', 'MG103'), masks(each(blobs(1, 6), lambda x: coloured(x, COLOURS)), 2)),
    'mmsegmentation#1338': Report(('MG136',), masks(blobs(255, 6), 2, files=dict(ending='.jpg')), never=HIDES),
    'mmsegmentation#566': Report(('MG107',), config(range(8), 2), never=HIDES),
    'mmsegmentation#42-a': Report(('MG127',), masks(stray(10, 10), 10), never=('num_classes=11',)),
    'mmsegmentation#42-b': Report(('MG201',), config(range(6), 6, seg_model(150)), CHECK),
    'NVlabs/SegFormer#92': Report(('MG106', 'MG125', 'MG116'), masks(scenes([0, 60, 120, 180], 6), 4), never=HIDES),
    'mmsegmentation#2425': Report(('MG124',), config(range(4), 4, **REDUCED)),
    'mmsegmentation#789': Report(('MG124',), config(range(4), 4, loader=REDUCED)),
    'mmsegmentation#300': Report(
        ('MG208', 'MG209', 'MG104'), config([0, 1, 2, VOID], 3, seg_model(3, IGNORING_ONE)), CHECK
    ),
    'mmsegmentation#578': Report(
        ('MG128',),
        seg_config(
            [*scenes(range(4), 6), np.full_like(scenes([0], 1)[0], VOID)],
            names(4),
            seg_model(4, dict(loss_decode={**CE, 'avg_non_ignore': True})),
        ),
    ),
    'mmsegmentation#3755': Report(('MG100',), masks(scenes(range(20), 6), 20)),
    'fyu/drn#9': Report(('MG101',), masks(scenes(range(34), 6), 19), never=HIDES),
    'LiheYoung/UniMatch#29': Report(('MG103',), masks(blobs(255, 6), 2), never=('--ignore-index',)),
    'milesial/Pytorch-UNet#258': Report(('MG102',), masks(scenes(range(4), 6), 3), never=HIDES),
    'VainF/DeepLabV3Plus-Pytorch#91': Report(
        ('MG107', 'MG127', 'MG104', 'MG105'), masks(scenes([0, 1, 2, 225], 6), 3), never=('ignore_index=225`',)
    ),
    'tensorflow/models#3739': Report(('MG125', 'MG106'), masks(blobs(128, 6), 2), never=HIDES),
    'CompVis/taming-transformers#8': Report(('MG120', 'MG131', 'MG100', 'MG159', 'MG158'), gray_alpha),
    'facebookresearch/detectron2#1760': Report(('MG106', 'MG121', 'MG125'), palette_as_gray, never=HIDES),
    'facebookresearch/Mask2Former#143': Report(
        ('MG103',),
        masks([np.where(blob(1, seed=s), 0, 255).astype(np.uint8) for s in range(6)], 2),
        never=('num_classes=1`',),
        says=('1 was subtracted', '0:1,255:0'),
    ),
    'XuJiacong/PIDNet#68': Report(('MG214',), config([*range(19), VOID], 19, weighted(19, 19)), CHECK, HIDES),
}
