"""Public reports: what is rebuilt of each, the codes that name its true cause, and what the first edit sets.

The words are those of truth.json: ``edit`` and ``never`` are config places (or options of scan and fix) -> values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Tuple

import numpy as np
from annotation_files import COCO_IDS, voc
from detection_configs import mask_rcnn
from drawn_scenes import VOID, blob, coloured, each, save, scene, scenes
from mask_files import STREET
from mask_values import blobs, slip
from PIL import Image
from situation import (
    CE,
    CHECK,
    SCAN,
    Build,
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
from truth import ALL_VALUES
from volume_sets import BRATS, HEART, HEART_IDS, LIVER, ct, flat_mask, flat_photo, noisy_binary, organs, volumes


class Report(NamedTuple):
    """A public report.

    Attributes:
        codes (tuple[str]): Codes that name its true cause, all of them right as the first finding.
        build (callable): As of a situation.
        edit (dict): What the first edit of the first finding sets.
        never (dict): What the first edit of no finding may set: it would do harm.
        files (tuple[str]): Files that the first finding names, among others.
        command (str): ``'scan'``, or ``'check'`` for the config alone.
    """

    codes: Tuple[str, ...]
    build: Build
    edit: Mapping[str, Any] = {}
    never: Mapping[str, Any] = {}
    files: Tuple[str, ...] = ()
    command: str = SCAN


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


def in_the_wrapper(root: Path) -> Any:
    coco_json(root / 'train/ann.json', {1: 'pantograph'}, some_boxes([1]))
    outer = dict(type='RepeatDataset', times=5, dataset=coco_data(root, None), metainfo=dict(classes=('pantograph',)))
    return train_config(root, retina(1), outer, 'mmdet')


def classes_at_the_wrapper(root: Path) -> Any:
    """The type of the data set has a list of its own."""
    coco_json(root / 'train/ann.json', {24: 'person', 25: 'rider'}, some_boxes([24, 25]))
    inner = dict(coco_data(root, None), type='CityscapesDataset')
    outer = dict(type='RepeatDataset', times=8, dataset=inner, metainfo=dict(classes=('person',)))
    return train_config(root, faster(1), outer, 'mmdet')


def voc_with(box: Any) -> Any:
    good = [('cat', [20, 30, 90, 120]), ('dog', [30, 20, 200, 150])]
    return [good] * 8 + [[('cat', box), ('dog', [20, 20, 120, 150])]]


ONE = {'background': 0, 'thing': 1}
SEGMENTS = {'background': 0, **{f'Segment_{i + 1}': i for i in range(1, 5)}}


def white(rng: np.random.Generator, case: int) -> np.ndarray:
    return flat_mask(rng, case) * 255


GUARDED = {'type': ['GuardedCrossEntropyLoss']}
FOREGROUND = {'label_map': [[255, 1]]}
NO_SHIFT = {'reduce_zero_label': [False]}
HIDES = {'num_classes': [255, 256], 'ignore_index': [-1]}
STOCK = {'num_classes': [80]}
FILTERED = {'filter_cfg': [{'filter_empty_gt': True}]}
NO_EMPTY = {'drop_empty': [True]}
FROM_ZERO = {'renumber': [0]}
INTENSITIES = {'label_map': ALL_VALUES, 'ignore': ALL_VALUES}
KEEPS_EMPTY = dict(filter_cfg=dict(filter_empty_gt=False))
TRIANGLE = dict(segmentation=[[20, 20, 60, 20, 60, 60]])
OUTSIDE = [*some_boxes([1, 2, 3], 10), [(1, [330, 250, 20, 20])], [(2, [10, 240, 30, 9])]]
FLAT_BOX = [[(0, [10, 10, 20, 20]), (1, [30, 30, 20, 0])]] * 4
SHADED = scenes([0, 60, 120, 180], 6)
OHEM = dict(loss_decode=dict(type='OhemCrossEntropy', thres=0.9, min_kept=131072))

SEGMENTATION: Dict[str, Report] = {
    'mmsegmentation#3864': Report(('MG214',), config([0, 1], 2, weighted(2, 2)), GUARDED, HIDES, command=CHECK),
    'mmsegmentation#3831': Report(('MG214',), config(range(6), 6, weighted(6, 6)), GUARDED, HIDES, command=CHECK),
    'mmsegmentation#3574': Report(('MG214',), config([*range(8), VOID], 8, weighted(8, 8)), GUARDED, HIDES),
    'mmsegmentation#980': Report(('MG207',), config(range(5), 5, weighted(5, 7)), {'class_weight': [[1.0] * 5]}),
    'mmsegmentation#3811': Report(
        ('MG207',),
        config(range(3), 3, mask2former(3, [0.1, 1.0, 1.0])),
        {'class_weight': [[0.1, 1.0, 1.0, 0.1]]},
        command=CHECK,
    ),
    'mmsegmentation#2607': Report(
        ('MG240', 'MG215'),
        config([0, 1], 2, seg_model(2, dict(out_channels=1, sampler=dict(type='OHEMPixelSampler', thresh=0.7)))),
        {'sampler': ALL_VALUES},
        command=CHECK,
    ),
    'mmsegmentation#2201': Report(
        ('MG206', 'MG215'),
        config([0, 1], 2, seg_model(2, dict(out_channels=1))),
        {'use_sigmoid': [True]},
        command=CHECK,
    ),
    'mmsegmentation#3080': Report(
        ('MG206', 'MG215'), config([0, 1], 1, seg_model(1)), {'num_classes': [2]}, command=CHECK
    ),
    'mmsegmentation#1180': Report(('MG103',), binary(sampler=dict(type='OHEMPixelSampler')), FOREGROUND),
    'mmsegmentation#1609': Report(('MG103',), binary(), FOREGROUND, {'reduce_zero_label': ALL_VALUES}),
    'LiheYoung/UniMatch#29': Report(('MG103',), masks(blobs(255, 6), 2), FOREGROUND, {'ignore_index': ALL_VALUES}),
    'facebookresearch/Mask2Former#143': Report(
        ('MG103',),
        masks([np.where(blob(1, seed=s), 0, 255).astype(np.uint8) for s in range(6)], 2),
        {'label_map': [[255, 0]]},
        {'num_classes': [1], **FOREGROUND},
    ),
    'mmsegmentation#3617': Report(('MG120', 'MG103'), masks(in_colours(blobs(1, 6), WHITE), 2), FOREGROUND),
    'mmsegmentation#1488': Report(('MG120',), masks(in_colours(scenes(range(5), 6), COLOURS), 5)),
    'mmsegmentation#970': Report(
        ('MG120', 'MG103'),
        masks(in_colours(blobs(1, 6), COLOURS), 2),
        {'colours': [{'0,0,0': 0, '0,255,255': 1}]},
    ),
    'hszhao/semseg#29': Report(
        ('MG120',),
        masks(in_colours(scenes([0, 2], 3), STREET), 19, files=dict(stem='x_{:06}_gtFine_color')),
        {'colours': ALL_VALUES},
    ),
    'CompVis/taming-transformers#8': Report(('MG120', 'MG131'), gray_alpha, never={'label_map': ALL_VALUES, **HIDES}),
    'mmsegmentation#1719': Report(('MG121', 'MG125'), masks(blobs(38, 6), 2), {'label_map': [[38, 1]]}),
    'divamgupta/image-segmentation-keras#117': Report(
        ('MG121',),
        config(range(4), 4, files=dict(palette=PALETTE), loader=dict(imdecode_backend='cv2')),
        {'imdecode_backend': ['pillow']},
    ),
    'facebookresearch/detectron2#1760': Report(
        ('MG106', 'MG121', 'MG125'), masks(each(scenes(range(4), 6), as_gray), 4), {'label_map': [[75, 2]]}, HIDES
    ),
    'NVlabs/SegFormer#92': Report(('MG106', 'MG125', 'MG116'), masks(SHADED, 4), {'label_map': [[120, 2]]}, HIDES),
    'tensorflow/models#3739': Report(('MG125', 'MG106'), masks(blobs(128, 6), 2), {'label_map': [[128, 1]]}, HIDES),
    'nnUNet#2404': Report(('MG106', 'MG136'), masks(NOISE, 2), {'threshold': [127]}),
    'alexgkendall/SegNet-Tutorial#161': Report(
        ('MG122',), masks(each(blobs(1, 6), lambda label: label.astype(np.uint16)), 2), never={'label_map': ALL_VALUES}
    ),
    'pytorch/pytorch#53959': Report(
        ('MG123',),
        masks(each(scenes(range(4), 6), lambda label: (label / 255).astype(np.float32)), 4, files=dict(ending='.tiff')),
        {'scale': [255]},
    ),
    'mmsegmentation#1338': Report(
        ('MG136',), masks(blobs(255, 6), 2, files=dict(ending='.jpg')), {'threshold': [127]}, HIDES
    ),
    'mmsegmentation#566': Report(('MG107',), config(range(8), 2), {'label_map': [[7, 255]]}, HIDES),
    'mmsegmentation#3609': Report(
        ('MG107', 'MG127'), masks([scene([0, 1]), scene([0, 1]), scene([0, 1, 7])], 2), {'label_map': [[7, 255]]}
    ),
    'VainF/DeepLabV3Plus-Pytorch#91': Report(
        ('MG107', 'MG127', 'MG104', 'MG105'),
        masks(scenes([0, 1, 2, 225], 6), 3),
        {'label_map': [[225, 255]]},
        {'ignore_index': [225]},
    ),
    'mmsegmentation#42-a': Report(
        ('MG127',), masks(slip(10, 12, 2, 10), 10), {'label_map': [[10, 255]]}, {'num_classes': [11]}
    ),
    'mmsegmentation#42-b': Report(('MG201',), config(range(6), 6, seg_model(150)), {'num_classes': [6]}, command=CHECK),
    'mmsegmentation#2146': Report(
        ('MG124',),
        seg_config(scenes(range(7), 6), ('_background_', *names(6)), seg_model(7), reduce_zero_label=True),
        NO_SHIFT,
    ),
    'mmsegmentation#789': Report(('MG124',), config(range(4), 4, loader=dict(reduce_zero_label=True)), NO_SHIFT),
    'mmsegmentation#1714': Report(
        ('MG124',), config([0, 1, 2], 2, reduce_zero_label=True), {**NO_SHIFT, 'num_classes': [3]}
    ),
    'ViTAE-Transformer/ViTAE-Transformer-Remote-Sensing#9': Report(
        ('MG115',), with_options(masks(scenes(range(1, 7), 6), 6), ignore_index=5), {'label_map': [[1, 0]]}
    ),
    'mmsegmentation#300': Report(
        ('MG208', 'MG209', 'MG104'),
        config([0, 1, 2, VOID], 3, seg_model(3, dict(ignore_index=100))),
        {'seg_pad_val': [100]},
        command=CHECK,
    ),
    'pytorch/pytorch#63004': Report(
        ('MG209',), with_options(masks(scenes([1, 2], 6), 3), ignore_index=0), {'ignore_index': [255]}
    ),
    'mmsegmentation#578': Report(
        ('MG128',),
        seg_config(
            [*scenes(range(4), 6), VOID_TILE], names(4), seg_model(4, dict(loss_decode={**CE, 'avg_non_ignore': True}))
        ),
        GUARDED,
        files=('masks/train/006.png',),
    ),
    'XuJiacong/PIDNet#65': Report(
        ('MG128',),
        seg_config([*scenes([0, 1, VOID], 4), VOID_TILE], names(2), seg_model(2, OHEM)),
        {'type': ['GuardedOhemCrossEntropy']},
    ),
    'mmsegmentation#3755': Report(('MG100',), masks(scenes(range(20), 6), 20)),
    'fyu/drn#9': Report(('MG101',), masks(scenes(range(34), 6), 19), {'label_map': [[7, 0]]}, HIDES),
    'chenxi116/DeepLabv3.pytorch#17': Report(
        ('MG101',), masks(scenes(range(34), 3), 19, files=dict(stem='x_{:06}_gtFine_labelIds')), {'label_map': [[7, 0]]}
    ),
    'milesial/Pytorch-UNet#258': Report(('MG102',), masks(scenes(range(4), 6), 3), {'num_classes': [4]}, HIDES),
}

DETECTION: Dict[str, Report] = {
    'mmdetection#4828': Report(
        ('MG203', 'MG201'),
        coco_config(numbered(*THREE), None, faster(3)),
        {'metainfo': ALL_VALUES},
        STOCK,
        command=CHECK,
    ),
    'mmdetection#8734': Report(
        ('MG201',),
        coco_config({1: 'CP'}, ('CP',), faster(80)),
        {'roi_head.bbox_head.num_classes': [1]},
        command=CHECK,
    ),
    'mmdetection#9606': Report(
        ('MG203', 'MG201'), in_the_wrapper, {'dataset.dataset.metainfo.classes': [['pantograph']]}, STOCK, command=CHECK
    ),
    'mmdetection#6532': Report(
        ('MG203', 'MG201', 'MG108'), classes_at_the_wrapper, {'dataset.dataset.metainfo.classes': [['person']]}
    ),
    'mmdetection#6218': Report(
        ('MG201',),
        coco_config(numbered(*THREE), THREE, mask_rcnn(3, 80)),
        {'mask_head.num_classes': [3]},
        command=CHECK,
    ),
    'mmdetection#9610': Report(
        ('MG140',), coco_config(numbered(*THREE), ('Katze', 'Hund', 'Kuh'), faster(3)), {'classes': [list(THREE)]}
    ),
    'mmdetection#3068': Report(
        ('MG160', 'MG202'),
        coco_config({1: 'ship'}, ('background', 'ship'), faster(2)),
        {'classes': [['ship']], 'num_classes': [1]},
        command=CHECK,
    ),
    'mmdetection#2047': Report(
        ('MG160',), json_alone(numbered('background', *(f'c{i}' for i in range(80))), 81), never={'num_classes': [82]}
    ),
    'mmdetection#2896': Report(('MG202',), coco_config(numbered(*THREE), THREE, faster(4)), {'num_classes': [3]}),
    'mmdetection#2903': Report(
        ('MG108', 'MG201'), coco_config(numbered(*THREE), THREE, retina(2)), {'num_classes': [3]}
    ),
    'LiWentomng/BoxInstSeg#9': Report(('MG207',), box2mask, {'class_weight': [[1.0, 0.1]]}, command=CHECK),
    'mmdetection#5000': Report(
        ('MG204',),
        coco_config(
            numbered(*THREE), THREE, faster(3), val=numbered(*THREE), val_classes=('aeroplane', 'bicycle', 'bird')
        ),
        {'val_dataloader.dataset.metainfo.classes': [list(THREE)]},
    ),
    'mmdetection#1732': Report(
        ('MG141', 'MG163', 'MG164', 'MG204'),
        coco_config(
            {1: 'angle', 2: 'top', 3: 'head'},
            ('angle', 'top', 'head'),
            faster(3),
            val={2: 'top', 1: 'angle', 3: 'head'},
            look_at='val',
        ),
        {'classes': [['angle', 'top', 'head']]},
    ),
    'mmdetection#3397': Report(
        ('MG109', 'MG152'), voc_config(voc_with([-20, -13, 60, 80]), ('cat', 'dog'), faster(2)), files=('000008.xml',)
    ),
    'mmdetection#2999': Report(
        ('MG109',), coco_config(numbered(*THREE), THREE, faster(3), OUTSIDE), files=('0010.jpg',)
    ),
    'pytorch/vision#8376': Report(('MG109',), json_alone({0: 'a', 1: 'b'}, 2, FLAT_BOX), files=('0000.jpg',)),
    'sovit-123/fasterrcnn-pytorch-training-pipeline#44': Report(
        ('MG109',), voc(voc_with([50, 30, 50, 120])), files=('000008.xml',)
    ),
    'endernewton/tf-faster-rcnn#107': Report(('MG109', 'MG152'), voc(voc_with([0, 0, 60, 80]))),
    'mmdetection#3563': Report(
        ('MG146',),
        coco_config(
            numbered(*THREE),
            THREE,
            mask_rcnn(3, 3),
            some_boxes([1, 2, 3], 10) + [[]] * 6,
            settings=KEEPS_EMPTY,
            annotation=TRIANGLE,
        ),
        FILTERED,
    ),
    'mmdetection#7116': Report(
        ('MG146',),
        coco_config(numbered(*THREE), THREE, retina(3), some_boxes([1, 2, 3], 10) + [[]] * 5, settings=KEEPS_EMPTY),
        FILTERED,
    ),
    'lyuwenyu/RT-DETR#672': Report(('MG146',), detr(range(3), 3, 10), NO_EMPTY),
    'lyuwenyu/RT-DETR#529': Report(('MG146',), detr(range(2), 2, 9), NO_EMPTY),
    'lightly-ai/lightly-train#446': Report(('MG146',), detr(range(1), 1, 2), NO_EMPTY),
    'lyuwenyu/RT-DETR#70': Report(('MG138',), detr(range(1, 7), 6), FROM_ZERO),
    'Intellindust-AI-Lab/DEIMv2#64': Report(('MG138',), detr(range(1, 16), 15), FROM_ZERO),
    'roboflow/rf-detr#413': Report(('MG138', 'MG116'), detr((1, 2, 4, 7), 4), FROM_ZERO),
    'facebookresearch/detr#190': Report(('MG138', 'MG115'), detr(range(1, 4), 2), {'num_classes': [4]}),
    'facebookresearch/detr#28': Report(('MG137', 'MG138'), detr(range(2905442, 2905448), 6), FROM_ZERO),
    'zylo117/Yet-Another-EfficientDet-Pytorch#373': Report(
        ('MG138', 'MG102', 'MG107'), detr(range(3), 2), {'num_classes': [3]}
    ),
    'ArgoHA/D-FINE-seg#4': Report(('MG100',), detr(range(4), 4)),
    'kuangliu/pytorch-retinanet#24': Report(('MG117', 'MG138'), detr(COCO_IDS, 80), FROM_ZERO),
    'facebookresearch/detectron2#546': Report(
        ('MG161', 'MG138'), json_alone(numbered('a', 'b', 'c', 'd'), 80), {'num_classes': [4]}
    ),
}

#: Raw data of nnU-Net, whose label files nibabel reads.
VOLUMES: Dict[str, Report] = {
    'nnUNet#2500': Report(
        ('MG185',), volumes(SEGMENTS, organs(2, 3, 4, 5)), {'label_map': [[5, 4]]}, {'ignore': ALL_VALUES}
    ),
    'nnUNet#1777': Report(
        ('MG185',), volumes(ONE, white, ending='.png', images=flat_photo), FOREGROUND, {'ignore': ALL_VALUES}
    ),
    'nnUNet#2404': Report(
        ('MG185',),
        volumes(ONE, noisy_binary, ending='.png', images=flat_photo),
        {'label_map': [[128, 1]]},
        {'ignore': ALL_VALUES},
    ),
    'nnUNet#1007': Report(
        ('MG196',), volumes(LIVER, ct, layout='v1'), never=INTENSITIES, files=('labelsTr/case_000.nii.gz',)
    ),
    'nnUNet#946': Report(('MG181',), volumes({}, organs(1, 2), layout='v1'), {'labels.1': ALL_VALUES}),
    'nnUNet#1183': Report(('MG185',), volumes(BRATS, organs(2, 4, 1), layout='v1'), {'label_map': [[4, 3]]}),
    'nnUNet#982': Report(
        ('MG185',),
        volumes(HEART, organs(*HEART_IDS, dtype=np.uint16), layout='v1'),
        {'label_map': [[205, 5]]},
        {'label_map': [[205, 1]]},
    ),
    'nnUNet#37': Report(
        ('MG185',),
        volumes({'background': 0, 'kidney': 1, 'tumour': 2}, organs(1, 3), layout='v1'),
        {'label_map': [[3, 2]]},
    ),
    'nnUNet#898': Report(
        ('MG185',),
        volumes(ONE, organs(1), drawn={4: organs(1, 655, dtype=np.uint16)}),
        {'label_map': [[655, 2]]},
        files=('labelsTr/case_004.nii.gz',),
    ),
    'nnUNet#1419': Report(('MG195',), volumes(ONE, organs(1))),
    'nnUNet#1098': Report(('MG195',), volumes(LIVER, organs(1, 2), layout='v1')),
}
