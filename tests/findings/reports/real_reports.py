"""Public reports: what is rebuilt of each, the codes that name its true cause, and what the first edit sets.

Their words are in truth.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, Tuple

import numpy as np
from annotation_files import COCO_IDS, voc
from detection_configs import mask_rcnn
from drawn_scenes import VOID, blob, colored, each, save, scene, scenes
from mask_files import STREET
from mask_values import CITYSCAPES_IDS, blobs, slip
from PIL import Image
from situation import (
    CE,
    CHECK,
    NOTHING,
    SCAN,
    Build,
    Situation,
    coco_config,
    coco_data,
    coco_json,
    faster,
    json_alone,
    masks,
    numbered,
    retina,
    seg_config,
    seg_model,
    some_boxes,
    train_config,
    voc_config,
    with_options,
)


def report(
    codes: Tuple[str, ...],
    build: Build,
    first: Mapping[str, Any] = NOTHING,
    never: Mapping[str, Any] = NOTHING,
    seen: Tuple[str, ...] = (),
    command: str = SCAN,
) -> Situation:
    """Return the situation of a public report, whose words are in truth.json."""
    return Situation('the public report', codes, build, first, never, seen, command)


WHITE = [(0, 0, 0), (255, 255, 255)]
COLORS = [(0, 0, 0), (0, 255, 255), (255, 0, 0), (153, 76, 0), (0, 153, 0), (9, 9, 200), (200, 9, 200), (90, 90, 90)]
PALETTE = [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]


def names(number: int) -> tuple:
    return tuple(f'class {i}' for i in range(number))


def weighted(number: int, weights: int) -> Dict[str, Any]:
    return seg_model(number, dict(loss_decode={**CE, 'class_weight': [1.0 + i / 10 for i in range(weights)]}))


def config(values: Any, number: int, model: Any = None, **more: Any) -> Any:
    return seg_config(scenes(values, 6), names(number), model or seg_model(number), **more)


def mask2former(classes: int, weights: Any) -> Dict[str, Any]:
    loss = dict(type='mmdet.CrossEntropyLoss', class_weight=weights)
    head = dict(type='Mask2FormerHead', num_classes=classes, loss_cls=loss)
    return dict(type='EncoderDecoder', decode_head=head, data_preprocessor=dict(type='SegDataPreProcessor'))


def in_colors(labels: Any, colors: Any) -> Any:
    return each(labels, lambda label: colored(label, colors))


def as_gray(label: np.ndarray) -> np.ndarray:
    """What ``convert('L')`` makes of palette files."""
    return (colored(label, PALETTE) @ [0.299, 0.587, 0.114]).round().astype(np.uint8)


def gray_alpha(root: Path) -> Any:
    labels = scenes(range(0, 180, 9), 5)
    save(root / 'masks', [Image.fromarray(np.stack([label, np.full_like(label, 255)], -1), 'LA') for label in labels])
    return root / 'masks', dict(num_classes=182)


VOID_TILE = np.full((60, 80), VOID, np.uint8)
NOISE = [np.random.default_rng(seed).integers(0, 256, (60, 80)).astype(np.uint8) for seed in range(2)]

THREE = ('cat', 'dog', 'cow')


def detr(ids: Any, num_classes: int, empty: int = 0) -> Any:
    """A JSON whose ids are the labels."""
    categories = {i: f'thing {i}' for i in ids}
    drawn = some_boxes(list(categories), 20 - empty, 6) + [[]] * empty
    return with_options(json_alone(categories, num_classes, drawn), labels='ids')


def box2mask(root: Path) -> Any:
    coco_json(root / 'train/ann.json', {1: 'ship'}, some_boxes([1]))
    loss = dict(type='CrossEntropyLoss', class_weight=[1.0] * 80 + [0.1])
    head = dict(type='Mask2FormerHead', num_things_classes=1, num_stuff_classes=0, loss_cls=loss)
    fusion = dict(type='MaskFormerFusionHead', num_things_classes=1, num_stuff_classes=0)
    model = dict(type='Mask2Former', panoptic_head=head, panoptic_fusion_head=fusion)
    return train_config(root, model, coco_data(root, ('ship',)), 'mmdet')


def classes_at_the_wrapper(root: Path) -> Any:
    """The type of the data set has a list of its own."""
    coco_json(root / 'train/ann.json', {24: 'person', 25: 'rider'}, some_boxes([24, 25]))
    inner = dict(coco_data(root, None), type='CityscapesDataset')
    outer = dict(type='RepeatDataset', times=8, dataset=inner, metainfo=dict(classes=('person',)))
    return train_config(root, faster(1), outer, 'mmdet')


def voc_with(box: Any) -> Any:
    good = [('cat', [20, 30, 90, 120]), ('dog', [30, 20, 200, 150])]
    return [good] * 8 + [[('cat', box), ('dog', [20, 20, 120, 150])]]


GUARDED = dict(type='GuardedCrossEntropyLoss')
FOREGROUND = dict(label_map={255: 1})
NO_SHIFT = dict(reduce_zero_label=False)
HIDES = dict(num_classes=[255, 256], ignore_index=[-1])
STOCK = dict(num_classes=[80])
FROM_ZERO = dict(renumber=0)
OF_CITYSCAPES = dict(label_map={**dict.fromkeys(range(34), VOID), **dict(zip(CITYSCAPES_IDS, range(19)))})
KEEPS_EMPTY = dict(filter_cfg=dict(filter_empty_gt=False))
OUTSIDE = [*some_boxes([1, 2, 3], 10), [(1, [330, 250, 20, 20])], [(2, [10, 240, 30, 9])]]
FLAT_BOX = [[(0, [10, 10, 20, 20]), (1, [30, 30, 20, 0])]] * 4
SHADED = scenes([0, 60, 120, 180], 6)
OHEM = dict(loss_decode=dict(type='OhemCrossEntropy', thres=0.9, min_kept=131072))

SEGMENTATION: Dict[str, Situation] = {
    'mmsegmentation#3864': report(('MG214',), config([0, 1], 2, weighted(2, 2)), GUARDED, HIDES, command=CHECK),
    'mmsegmentation#3574': report(('MG214',), config([*range(8), VOID], 8, weighted(8, 8)), GUARDED, HIDES),
    'mmsegmentation#3811': report(
        ('MG207',),
        config(range(3), 3, mask2former(3, [0.1, 1.0, 1.0])),
        dict(class_weight=[0.1, 1.0, 1.0, 0.1]),
        command=CHECK,
    ),
    'mmsegmentation#2201': report(
        ('MG215',),
        config([0, 1], 2, seg_model(2, dict(out_channels=1))),
        dict(use_sigmoid=True),
        command=CHECK,
    ),
    'mmsegmentation#3080': report(('MG215',), config([0, 1], 1, seg_model(1)), dict(num_classes=2), command=CHECK),
    'mmsegmentation#1609': report(
        ('MG103',), seg_config(blobs(255, 6), names(2), seg_model(2)), FOREGROUND, dict(reduce_zero_label=...)
    ),
    'LiheYoung/UniMatch#29': report(('MG103',), masks(blobs(255, 6), 2), FOREGROUND, dict(ignore_index=...)),
    'facebookresearch/Mask2Former#143': report(
        ('MG133',),
        masks([np.where(blob(1, seed=s), 0, 255).astype(np.uint8) for s in range(6)], 2),
        dict(label_map={0: 1, 255: 0}),
        dict(num_classes=[1], label_map=[{255: 1}, {0: 0, 255: 1}]),
    ),
    'mmsegmentation#3617': report(('MG580', 'MG103'), masks(in_colors(blobs(1, 6), WHITE), 2), FOREGROUND),
    'mmsegmentation#1488': report(('MG120',), masks(in_colors(scenes(range(5), 6), COLORS), 5)),
    'mmsegmentation#970': report(
        ('MG120', 'MG103'),
        masks(in_colors(blobs(1, 6), COLORS), 2),
        dict(colors={COLORS[0]: 0, COLORS[1]: 1}),
    ),
    'hszhao/semseg#29': report(
        ('MG120',),
        masks(in_colors(scenes([0, 2], 3), STREET), 19, files=dict(stem='x_{:06}_gtFine_color')),
        dict(colors=...),
    ),
    'CompVis/taming-transformers#8': report(('MG580',), gray_alpha, never=dict(HIDES, label_map=...)),
    'mmsegmentation#1719': report(('MG121', 'MG125'), masks(blobs(38, 6), 2), dict(label_map={38: 1})),
    'divamgupta/image-segmentation-keras#117': report(
        ('MG121',),
        config(range(4), 4, files=dict(palette=PALETTE), loader=dict(imdecode_backend='cv2')),
        dict(imdecode_backend='pillow'),
    ),
    'facebookresearch/detectron2#1760': report(
        ('MG106', 'MG121', 'MG125'),
        masks(each(scenes(range(4), 6), as_gray), 4),
        dict(label_map={38: 1, 75: 2, 113: 3}),
        HIDES,
    ),
    'NVlabs/SegFormer#92': report(
        ('MG106', 'MG125', 'MG116'), masks(SHADED, 4), dict(label_map={60: 1, 120: 2, 180: 3}), HIDES
    ),
    'tensorflow/models#3739': report(('MG125', 'MG106'), masks(blobs(128, 6), 2), dict(label_map={128: 1}), HIDES),
    'nnUNet#2404': report(('MG106', 'MG136'), masks(NOISE, 2), dict(threshold=127)),
    'alexgkendall/SegNet-Tutorial#161': report(
        ('MG122',), masks(each(blobs(1, 6), lambda label: label.astype(np.uint16)), 2), never=dict(label_map=...)
    ),
    'pytorch/pytorch#53959': report(
        ('MG123',),
        masks(each(scenes(range(4), 6), lambda label: (label / 255).astype(np.float32)), 4, files=dict(ending='.tiff')),
        dict(scale=255),
    ),
    'mmsegmentation#1338': report(
        ('MG136',), masks(blobs(255, 6), 2, files=dict(ending='.jpg')), dict(threshold=127), HIDES
    ),
    'mmsegmentation#566': report(
        ('MG107',), config(range(8), 2), dict(label_map=dict.fromkeys(range(2, 8), VOID)), HIDES
    ),
    'mmsegmentation#3609': report(
        ('MG107', 'MG127'), masks([scene([0, 1]), scene([0, 1]), scene([0, 1, 7])], 2), dict(label_map={7: VOID})
    ),
    'VainF/DeepLabV3Plus-Pytorch#91': report(
        ('MG107', 'MG127', 'MG104', 'MG105'),
        masks(scenes([0, 1, 2, 225], 6), 3),
        dict(label_map={225: VOID}),
        dict(ignore_index=[225]),
    ),
    'mmsegmentation#42-a': report(
        ('MG127',), masks(slip(10, 12, 2, 10), 10), dict(label_map={10: VOID}), dict(num_classes=[11])
    ),
    'mmsegmentation#42-b': report(('MG201',), config(range(6), 6, seg_model(150)), dict(num_classes=6), command=CHECK),
    'mmsegmentation#2146': report(
        ('MG124',),
        seg_config(scenes(range(7), 6), ('_background_', *names(6)), seg_model(7), reduce_zero_label=True),
        NO_SHIFT,
    ),
    'mmsegmentation#789': report(('MG124',), config(range(4), 4, loader=dict(reduce_zero_label=True)), NO_SHIFT),
    'mmsegmentation#1714': report(
        ('MG124',), config([0, 1, 2], 2, reduce_zero_label=True), dict(NO_SHIFT, num_classes=3)
    ),
    'ViTAE-Transformer/ViTAE-Transformer-Remote-Sensing#9': report(
        ('MG115',),
        with_options(masks(scenes(range(1, 7), 6), 6), ignore_index=5),
        dict(label_map={value: value - 1 for value in range(1, 7)}),
    ),
    'mmsegmentation#300': report(
        ('MG208', 'MG209', 'MG104'),
        config([0, 1, 2, VOID], 3, seg_model(3, dict(ignore_index=100))),
        dict(seg_pad_val=100),
        command=CHECK,
    ),
    'pytorch/pytorch#63004': report(
        ('MG209',), with_options(masks(scenes([1, 2], 6), 3), ignore_index=0), dict(ignore_index=255)
    ),
    'mmsegmentation#578': report(
        ('MG128',),
        seg_config(
            [*scenes(range(4), 6), VOID_TILE], names(4), seg_model(4, dict(loss_decode={**CE, 'avg_non_ignore': True}))
        ),
        GUARDED,
        seen=('masks/train/006.png',),
    ),
    'XuJiacong/PIDNet#65': report(
        ('MG128',),
        seg_config([*scenes([0, 1, VOID], 4), VOID_TILE], names(2), seg_model(2, OHEM)),
        dict(type='GuardedOhemCrossEntropy'),
    ),
    'mmsegmentation#3755': report(('MG100',), masks(scenes(range(20), 6), 20)),
    'fyu/drn#9': report(('MG101',), masks(scenes(range(34), 6), 19), OF_CITYSCAPES, HIDES),
    'chenxi116/DeepLabv3.pytorch#17': report(
        ('MG101',), masks(scenes(range(34), 3), 19, files=dict(stem='x_{:06}_gtFine_labelIds')), OF_CITYSCAPES
    ),
    'milesial/Pytorch-UNet#258': report(('MG102',), masks(scenes(range(4), 6), 3), dict(num_classes=4), HIDES),
}

DETECTION: Dict[str, Situation] = {
    'mmdetection#4828': report(
        ('MG203', 'MG201'),
        coco_config(numbered(*THREE), None, faster(3)),
        dict(metainfo=...),
        STOCK,
        command=CHECK,
    ),
    'mmdetection#6532': report(('MG203', 'MG201', 'MG108'), classes_at_the_wrapper, dict(classes=('person',))),
    'mmdetection#6218': report(
        ('MG201',),
        coco_config(numbered(*THREE), THREE, mask_rcnn(3, 80)),
        dict(num_classes=3),
        seen=('mask_head',),
        command=CHECK,
    ),
    'mmdetection#9610': report(
        ('MG140',), coco_config(numbered(*THREE), ('Katze', 'Hund', 'Kuh'), faster(3)), dict(classes=THREE)
    ),
    'mmdetection#3068': report(
        ('MG160', 'MG202'),
        coco_config({1: 'ship'}, ('background', 'ship'), faster(2)),
        dict(classes=('ship',), num_classes=1),
        command=CHECK,
    ),
    'mmdetection#2047': report(
        ('MG160',), json_alone(numbered('background', *(f'c{i}' for i in range(80))), 81), never=dict(num_classes=[82])
    ),
    'mmdetection#2896': report(('MG202',), coco_config(numbered(*THREE), THREE, faster(4)), dict(num_classes=3)),
    'mmdetection#2903': report(
        ('MG108', 'MG201'), coco_config(numbered(*THREE), THREE, retina(2)), dict(num_classes=3)
    ),
    'LiWentomng/BoxInstSeg#9': report(('MG207',), box2mask, dict(class_weight=[1.0, 0.1]), command=CHECK),
    'mmdetection#5000': report(
        ('MG204',),
        coco_config(
            numbered(*THREE), THREE, faster(3), val=numbered(*THREE), val_classes=('aeroplane', 'bicycle', 'bird')
        ),
        dict(classes=THREE),
        seen=('val_dataloader',),
    ),
    'mmdetection#1732': report(
        ('MG141', 'MG163', 'MG164', 'MG204'),
        coco_config(
            {1: 'angle', 2: 'top', 3: 'head'},
            ('angle', 'top', 'head'),
            faster(3),
            val={2: 'top', 1: 'angle', 3: 'head'},
            look_at='val',
        ),
        dict(classes=('angle', 'top', 'head')),
    ),
    'mmdetection#3397': report(
        ('MG109', 'MG152'), voc_config(voc_with([-20, -13, 60, 80]), ('cat', 'dog'), faster(2)), seen=('000008.xml',)
    ),
    'mmdetection#2999': report(
        ('MG109',), coco_config(numbered(*THREE), THREE, faster(3), OUTSIDE), seen=('0010.jpg',)
    ),
    'pytorch/vision#8376': report(('MG109',), json_alone({0: 'a', 1: 'b'}, 2, FLAT_BOX), seen=('0000.jpg',)),
    'endernewton/tf-faster-rcnn#107': report(('MG109', 'MG152'), voc(voc_with([0, 0, 60, 80]))),
    'mmdetection#7116': report(
        ('MG146',),
        coco_config(numbered(*THREE), THREE, retina(3), some_boxes([1, 2, 3], 10) + [[]] * 5, settings=KEEPS_EMPTY),
    ),
    'lyuwenyu/RT-DETR#672': report(('MG146',), detr(range(3), 3, 10)),
    'lyuwenyu/RT-DETR#70': report(('MG138',), detr(range(1, 7), 6), FROM_ZERO),
    'roboflow/rf-detr#413': report(('MG138', 'MG116'), detr((1, 2, 4, 7), 4), FROM_ZERO),
    'facebookresearch/detr#190': report(('MG138', 'MG115'), detr(range(1, 4), 2), dict(num_classes=4)),
    'facebookresearch/detr#28': report(('MG137', 'MG138'), detr(range(2905442, 2905448), 6), FROM_ZERO),
    'zylo117/Yet-Another-EfficientDet-Pytorch#373': report(
        ('MG138', 'MG102', 'MG107'), detr(range(3), 2), dict(num_classes=3)
    ),
    'ArgoHA/D-FINE-seg#4': report(('MG100',), detr(range(4), 4)),
    'kuangliu/pytorch-retinanet#24': report(('MG117', 'MG138'), detr(COCO_IDS, 80), FROM_ZERO),
    'facebookresearch/detectron2#546': report(
        ('MG161', 'MG138'), json_alone(numbered('a', 'b', 'c', 'd'), 80), dict(num_classes=4)
    ),
}
