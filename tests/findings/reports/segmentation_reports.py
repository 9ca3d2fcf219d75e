"""Reports about pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy as np
from drawn_scenes import VOID, blob, coloured, each, save, scene, scenes
from mask_files import STREET
from mask_values import blobs, slip
from report import reported
from situation import CE, CHECK, Situation, masks, seg_config, seg_model, with_options

WHITE = [(0, 0, 0), (255, 255, 255)]
COLOURS = [(0, 0, 0), (0, 255, 255), (255, 0, 0), (153, 76, 0), (0, 153, 0), (9, 9, 200), (200, 9, 200), (90, 90, 90)]
PALETTE = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]


def names(number: int) -> tuple:
    return tuple(f'class {i}' for i in range(number))


def weighted(number: int, weights: int) -> Dict[str, Any]:
    return seg_model(number, dict(loss_decode={**CE, 'class_weight': [1.0 + i / 10 for i in range(weights)]}))


def config(values: Any, number: int, model: Any = None, **more: Any) -> Any:
    return seg_config(scenes(values, 6), names(number), model or seg_model(number), **more)


def binary(**head: Any) -> Any:
    return seg_config(blobs(255, 6), names(2), seg_model(2, head))


def mask2former(classes: int, weights: Any) -> Dict[str, Any]:
    loss = dict(type='mmdet.CrossEntropyLoss', class_weight=weights)
    head = dict(type='Mask2FormerHead', num_classes=classes, loss_cls=loss)
    return dict(type='EncoderDecoder', decode_head=head, data_preprocessor=dict(type='SegDataPreProcessor'))


def in_colours(labels: Any, colours: Any) -> Any:
    return each(labels, lambda label: coloured(label, colours))


def as_gray(label: np.ndarray) -> np.ndarray:
    """What ``convert('L')`` makes of palette files."""
    return (coloured(label, PALETTE) @ [0.299, 0.587, 0.114]).round().astype(np.uint8)


def gray_alpha(root: Path) -> Any:
    from PIL import Image

    labels = scenes(range(0, 180, 9), 5)
    save(root / 'masks', [Image.fromarray(np.stack([label, np.full_like(label, 255)], -1), 'LA') for label in labels])
    return root / 'masks', dict(num_classes=182)


VOID_TILE = np.full((60, 80), VOID, np.uint8)
NOISE = [np.random.default_rng(seed).integers(0, 256, (60, 80)).astype(np.uint8) for seed in range(2)]
GUARDED = ("type='GuardedCrossEntropyLoss'", 'The labels need no change')
FOREGROUND = ('label_map={255: 1}', 'Do not ignore 255')
HIDES = ('num_classes=255', 'num_classes=256', 'ignore_index=-1`')

REPORTS: Dict[str, Situation] = {
    'mmsegmentation#3864': reported(('MG214',), config([0, 1], 2, weighted(2, 2)), GUARDED, HIDES, CHECK),
    'mmsegmentation#3831': reported(('MG214',), config(range(6), 6, weighted(6, 6)), GUARDED, HIDES, CHECK),
    'mmsegmentation#3574': reported(
        ('MG214',), config([*range(8), VOID], 8, weighted(8, 8)), ('class_weight[255]', *GUARDED), HIDES
    ),
    'mmsegmentation#980': reported(('MG207',), config(range(5), 5, weighted(5, 7)), ('class_weight=[1.0] * 5',)),
    'mmsegmentation#3811': reported(
        ('MG207',), config(range(3), 3, mask2former(3, [0.1, 1.0, 1.0])), ('4 weights', 'no object'), command=CHECK
    ),
    'mmsegmentation#2607': reported(
        ('MG240', 'MG215'),
        config([0, 1], 2, seg_model(2, dict(out_channels=1, sampler=dict(type='OHEMPixelSampler', thresh=0.7)))),
        ('Take the sampler out', 'two channels'),
        command=CHECK,
    ),
    'mmsegmentation#2201': reported(
        ('MG206', 'MG215'),
        config([0, 1], 2, seg_model(2, dict(out_channels=1))),
        ('use_sigmoid=True', 'num_classes=2'),
        command=CHECK,
    ),
    'mmsegmentation#3080': reported(
        ('MG206', 'MG215'), config([0, 1], 1, seg_model(1)), ('num_classes=2',), command=CHECK
    ),
    'mmsegmentation#1180': reported(('MG103',), binary(sampler=dict(type='OHEMPixelSampler')), FOREGROUND),
    'mmsegmentation#1609': reported(('MG103',), binary(), FOREGROUND, ('reduce_zero',)),
    'LiheYoung/UniMatch#29': reported(('MG103',), masks(blobs(255, 6), 2), FOREGROUND, ('--ignore-index',)),
    'facebookresearch/Mask2Former#143': reported(
        ('MG103',),
        masks([np.where(blob(1, seed=s), 0, 255).astype(np.uint8) for s in range(6)], 2),
        ('1 was subtracted', '0:1,255:0'),
        ('num_classes=1`',),
    ),
    'mmsegmentation#3617': reported(
        ('MG120', 'MG103'), masks(in_colours(blobs(1, 6), WHITE), 2), ('(rgb[..., 0] > 127)',)
    ),
    'mmsegmentation#1488': reported(
        ('MG120',), masks(in_colours(scenes(range(5), 6), COLOURS), 5), ('turn colours into indices',)
    ),
    'mmsegmentation#970': reported(('MG120', 'MG103'), masks(in_colours(blobs(1, 6), COLOURS), 2)),
    'hszhao/semseg#29': reported(
        ('MG120',),
        masks(in_colours(scenes([0, 2], 3), STREET), 19, files=dict(stem='x_{:06}_gtFine_color')),
        ('labelTrainIds',),
    ),
    'CompVis/taming-transformers#8': reported(
        ('MG120', 'MG131', 'MG100', 'MG159', 'MG158'), gray_alpha, ('label = rgb[..., 0]',)
    ),
    'mmsegmentation#1719': reported(('MG121', 'MG125'), masks(blobs(38, 6), 2), ('label_map={38: 1}',)),
    'divamgupta/image-segmentation-keras#117': reported(
        ('MG121',), config(range(4), 4, files=dict(palette=PALETTE), loader=dict(imdecode_backend='cv2')), ('Pillow',)
    ),
    'facebookresearch/detectron2#1760': reported(
        ('MG106', 'MG121', 'MG125'), masks(each(scenes(range(4), 6), as_gray), 4), never=HIDES
    ),
    'NVlabs/SegFormer#92': reported(
        ('MG106', 'MG125', 'MG116'), masks(scenes([0, 60, 120, 180], 6), 4), ('{60: 1, 120: 2, 180: 3}',), HIDES
    ),
    'tensorflow/models#3739': reported(('MG125', 'MG106'), masks(blobs(128, 6), 2), ('label_map={128: 1}',), HIDES),
    'nnUNet#2404': reported(('MG106', 'MG136'), masks(NOISE, 2), ('threshold',)),
    'alexgkendall/SegNet-Tutorial#161': reported(
        ('MG122',), masks(each(blobs(1, 6), lambda label: label.astype(np.uint16)), 2), ('8 bits',)
    ),
    'pytorch/pytorch#53959': reported(
        ('MG123',),
        masks(each(scenes(range(4), 6), lambda label: (label / 255).astype(np.float32)), 4, files=dict(ending='.tiff')),
        ('torch.as_tensor(np.array(mask)).long()',),
    ),
    'mmsegmentation#1338': reported(
        ('MG136',), masks(blobs(255, 6), 2, files=dict(ending='.jpg')), ('PNG', 'threshold'), HIDES
    ),
    'mmsegmentation#566': reported(
        ('MG107',), config(range(8), 2), ('{2: 255, 3: 255, 4: 255, 5: 255, 6: 255, 7: 255}',), HIDES
    ),
    'mmsegmentation#3609': reported(
        ('MG107', 'MG127'), masks([scene([0, 1]), scene([0, 1]), scene([0, 1, 7])], 2), ('7', '0..1')
    ),
    'VainF/DeepLabV3Plus-Pytorch#91': reported(
        ('MG107', 'MG127', 'MG104', 'MG105'), masks(scenes([0, 1, 2, 225], 6), 3), ('225',), ('ignore_index=225`',)
    ),
    'mmsegmentation#42-a': reported(
        ('MG127',), masks(slip(10, 12, 2, 10), 10), ('num_classes is right',), ('num_classes=11',)
    ),
    'mmsegmentation#42-b': reported(('MG201',), config(range(6), 6, seg_model(150)), ('num_classes=6',), command=CHECK),
    'mmsegmentation#2146': reported(
        ('MG124',),
        seg_config(scenes(range(7), 6), ('_background_', *names(6)), seg_model(7), reduce_zero_label=True),
        ('reduce_zero_label=False',),
    ),
    'mmsegmentation#789': reported(
        ('MG124',), config(range(4), 4, loader=dict(reduce_zero_label=True)), ('reduce_zero_label=False',)
    ),
    'mmsegmentation#1714': reported(
        ('MG124',), config([0, 1, 2], 2, reduce_zero_label=True), ('reduce_zero_label=False', 'num_classes=3')
    ),
    'ViTAE-Transformer/ViTAE-Transformer-Remote-Sensing#9': reported(
        ('MG115',), with_options(masks(scenes(range(1, 7), 6), 6), ignore_index=5), ('reduce_zero_label=True',)
    ),
    'mmsegmentation#300': reported(
        ('MG208', 'MG209', 'MG104'),
        config([0, 1, 2, VOID], 3, seg_model(3, dict(ignore_index=100))),
        ('seg_pad_val=100',),
        command=CHECK,
    ),
    'pytorch/pytorch#63004': reported(
        ('MG209',), with_options(masks(scenes([1, 2], 6), 3), ignore_index=0), ('outside the classes',)
    ),
    'mmsegmentation#578': reported(
        ('MG128',),
        seg_config(
            [*scenes(range(4), 6), VOID_TILE], names(4), seg_model(4, dict(loss_decode={**CE, 'avg_non_ignore': True}))
        ),
        ('006.png', '1 file of 7', 'Leave these files out'),
    ),
    'XuJiacong/PIDNet#65': reported(
        ('MG128',),
        seg_config(
            [*scenes([0, 1, VOID], 4), VOID_TILE],
            names(2),
            seg_model(2, dict(loss_decode=dict(type='OhemCrossEntropy', thres=0.9, min_kept=131072))),
        ),
        ('attached 0',),
    ),
    'mmsegmentation#3755': reported(('MG100',), masks(scenes(range(20), 6), 20), ('uint8', 'int64', 'mmguard env')),
    'fyu/drn#9': reported(('MG101',), masks(scenes(range(34), 6), 19), ('label_map={0: 255', '7: 0'), HIDES),
    'chenxi116/DeepLabv3.pytorch#17': reported(
        ('MG101',),
        masks(scenes(range(34), 3), 19, files=dict(stem='x_{:06}_gtFine_labelIds')),
        ('labelTrainIds',),
    ),
    'milesial/Pytorch-UNet#258': reported(('MG102',), masks(scenes(range(4), 6), 3), ('num_classes=4',), HIDES),
}
