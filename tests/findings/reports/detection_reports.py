"""Reports about boxes and categories."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from annotation_files import COCO_IDS, voc
from detection_configs import mask_rcnn
from report import reported
from situation import (
    CHECK,
    Situation,
    coco_config,
    coco_data,
    coco_json,
    faster,
    json_alone,
    numbered,
    retina,
    some_boxes,
    train_config,
    voc_config,
    with_options,
)

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


NAMES = ('metainfo=dict(classes=',)
FROM_ZERO = ('--renumber 0',)
FILTERED = ('filter_empty_gt=True',)
KEEPS_EMPTY = dict(filter_cfg=dict(filter_empty_gt=False))

REPORTS: Dict[str, Situation] = {
    'mmdetection#4828': reported(
        ('MG203', 'MG201'),
        coco_config(numbered(*THREE), None, faster(3)),
        NAMES,
        never=('num_classes=80',),
        command=CHECK,
    ),
    'mmdetection#8734': reported(
        ('MG201',), coco_config({1: 'CP'}, ('CP',), faster(80)), ('num_classes=1', 'roi_head.bbox_head'), command=CHECK
    ),
    'mmdetection#9606': reported(
        ('MG203', 'MG201'),
        in_the_wrapper,
        ('train_dataloader.dataset.dataset.metainfo',),
        never=('num_classes=80',),
        command=CHECK,
    ),
    'mmdetection#6532': reported(('MG203', 'MG201', 'MG108'), classes_at_the_wrapper, NAMES),
    'mmdetection#6218': reported(
        ('MG201',),
        coco_config(numbered(*THREE), THREE, mask_rcnn(3, 80)),
        ('num_classes=3', 'mask_head'),
        command=CHECK,
    ),
    'mmdetection#9610': reported(
        ('MG140',),
        coco_config(numbered(*THREE), ('Katze', 'Hund', 'Kuh'), faster(3)),
        ("classes=('cat', 'dog', 'cow',)",),
    ),
    'mmdetection#3068': reported(
        ('MG160', 'MG202'),
        coco_config({1: 'ship'}, ('background', 'ship'), faster(2)),
        ("classes=('ship',)", 'num_classes=1'),
        command=CHECK,
    ),
    'mmdetection#2047': reported(
        ('MG160',),
        json_alone(numbered('background', *(f'c{i}' for i in range(80))), 81),
        ('Remove it from `metainfo.classes`',),
    ),
    'mmdetection#2896': reported(('MG202',), coco_config(numbered(*THREE), THREE, faster(4)), ('num_classes=3',)),
    'mmdetection#2903': reported(
        ('MG108', 'MG201'), coco_config(numbered(*THREE), THREE, retina(2)), ('num_classes=3',)
    ),
    'LiWentomng/BoxInstSeg#9': reported(('MG207',), box2mask, ('class_weight=[1.0, 0.1]',), command=CHECK),
    'mmdetection#5000': reported(
        ('MG204',),
        coco_config(
            numbered(*THREE), THREE, faster(3), val=numbered(*THREE), val_classes=('aeroplane', 'bicycle', 'bird')
        ),
        ('voc_classes',),
    ),
    'mmdetection#1732': reported(
        ('MG141', 'MG163', 'MG164', 'MG204'),
        coco_config(
            {1: 'angle', 2: 'top', 3: 'head'},
            ('angle', 'top', 'head'),
            faster(3),
            val={2: 'top', 1: 'angle', 3: 'head'},
            look_at='val',
        ),
        ('--classes angle,top,head',),
    ),
    'mmdetection#3397': reported(
        ('MG109', 'MG152'), voc_config(voc_with([-20, -13, 60, 80]), ('cat', 'dog'), faster(2)), never=("VOC's minus",)
    ),
    'mmdetection#2999': reported(
        ('MG109',),
        coco_config(
            numbered(*THREE),
            THREE,
            faster(3),
            [*some_boxes([1, 2, 3], 10), [(1, [330, 250, 20, 20])], [(2, [10, 240, 30, 9])]],
        ),
        ('wholly outside', '0010.jpg'),
    ),
    'pytorch/vision#8376': reported(
        ('MG109',), json_alone({0: 'a', 1: 'b'}, 2, [[(0, [10, 10, 20, 20]), (1, [30, 30, 20, 0])]] * 4), ('height 0',)
    ),
    'sovit-123/fasterrcnn-pytorch-training-pipeline#44': reported(
        ('MG109',), voc(voc_with([50, 30, 50, 120])), ('000008.xml',)
    ),
    'endernewton/tf-faster-rcnn#107': reported(('MG109', 'MG152'), voc(voc_with([0, 0, 60, 80]))),
    'mmdetection#3563': reported(
        ('MG146',),
        coco_config(
            numbered(*THREE),
            THREE,
            mask_rcnn(3, 3),
            some_boxes([1, 2, 3], 10) + [[]] * 6,
            settings=KEEPS_EMPTY,
            annotation=dict(segmentation=[[20, 20, 60, 20, 60, 60]]),
        ),
        FILTERED,
    ),
    'mmdetection#7116': reported(
        ('MG146',),
        coco_config(
            numbered(*THREE),
            THREE,
            retina(3),
            some_boxes([1, 2, 3], 10) + [[]] * 5,
            settings=KEEPS_EMPTY,
        ),
        FILTERED,
    ),
    'lyuwenyu/RT-DETR#672': reported(('MG146',), detr(range(3), 3, 10), ('--drop-empty',)),
    'lyuwenyu/RT-DETR#529': reported(('MG146',), detr(range(2), 2, 9), ('denoising',)),
    'lightly-ai/lightly-train#446': reported(('MG146',), detr(range(1), 1, 2), ('zero losses',)),
    'lyuwenyu/RT-DETR#70': reported(('MG138',), detr(range(1, 7), 6), ('are used as labels', *FROM_ZERO)),
    'Intellindust-AI-Lab/DEIMv2#64': reported(
        ('MG138',), detr(range(1, 16), 15), (*FROM_ZERO, 'remap_mscoco_category: False')
    ),
    'roboflow/rf-detr#413': reported(('MG138', 'MG116'), detr((1, 2, 4, 7), 4), FROM_ZERO),
    'facebookresearch/detr#190': reported(('MG138', 'MG115'), detr(range(1, 4), 2), ('num_classes=4',)),
    'facebookresearch/detr#28': reported(
        ('MG137', 'MG138'), detr(range(2905442, 2905448), 6), ('leave the boxes as they are', 'CUDA_LAUNCH_BLOCKING=1')
    ),
    'zylo117/Yet-Another-EfficientDet-Pytorch#373': reported(('MG138', 'MG102', 'MG107'), detr(range(3), 2), ('2',)),
    'ArgoHA/D-FINE-seg#4': reported(('MG100',), detr(range(4), 4), ('mmguard env',)),
    'kuangliu/pytorch-retinanet#24': reported(('MG117', 'MG138'), detr(COCO_IDS, 80), FROM_ZERO),
    'facebookresearch/detectron2#546': reported(
        ('MG161', 'MG138'), json_alone(numbered('a', 'b', 'c', 'd'), 80), ('MODEL.RETINANET.NUM_CLASSES',)
    ),
}
