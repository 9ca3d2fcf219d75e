"""Reports about boxes and categories."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from kinds_classes import rt_detr
from report import CHECK, Report
from situation import (
    coco_config,
    coco_data,
    coco_json,
    faster,
    json_alone,
    numbered,
    retina,
    some_boxes,
    voc_config,
    voc_xml,
    with_options,
    write_config,
)

ERRORS_OF_REPORTS = 'signatures/test_errors_of_reports.py'
THREE = ('cat', 'dog', 'cow')
COCO_IDS = [i for i in range(1, 91) if i not in (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)]


def detr(ids: Any, num_classes: int, empty: int = 0, **more: Any) -> Any:
    """A JSON whose ids are the labels."""
    categories = {i: f'thing {i}' for i in ids}
    drawn = some_boxes(list(categories), 20 - empty, 6) + [[]] * empty
    return with_options(json_alone(categories, num_classes, drawn, **more), labels='ids')


def cascade(bbox: int, mask: int) -> Dict[str, Any]:
    heads = dict(type='Shared2FCBBoxHead', num_classes=bbox, loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=False))
    mask_head = dict(type='FCNMaskHead', num_classes=mask, loss_mask=dict(type='CrossEntropyLoss', use_mask=True))
    return dict(type='MaskRCNN', roi_head=dict(type='StandardRoIHead', bbox_head=heads, mask_head=mask_head))


def box2mask(root: Path) -> Any:
    coco_json(root / 'train/ann.json', {1: 'ship'}, some_boxes([1]))
    loss = dict(type='CrossEntropyLoss', class_weight=[1.0] * 80 + [0.1])
    head = dict(type='Mask2FormerHead', num_things_classes=1, num_stuff_classes=0, loss_cls=loss)
    fusion = dict(type='MaskFormerFusionHead', num_things_classes=1, num_stuff_classes=0)
    model = dict(type='Mask2Former', panoptic_head=head, panoptic_fusion_head=fusion)
    loader = dict(batch_size=2, dataset=coco_data(root, ('ship',)))
    return write_config(root, default_scope='mmdet', model=model, train_dataloader=loader), dict(splits=('train',))


def in_the_wrapper(root: Path) -> Any:
    coco_json(root / 'train/ann.json', {1: 'pantograph'}, some_boxes([1]))
    outer = dict(type='RepeatDataset', times=5, dataset=coco_data(root, None), metainfo=dict(classes=('pantograph',)))
    parts = dict(model=retina(1), train_dataloader=dict(batch_size=2, dataset=outer))
    return write_config(root, default_scope='mmdet', **parts), dict(splits=('train',))


def voc(drawn: Any) -> Any:
    return lambda root: (voc_xml(root / 'VOC2007', drawn), {})


def voc_with(box: Any) -> Any:
    good = [('cat', [20, 30, 90, 120]), ('dog', [30, 20, 200, 150])]
    return [good] * 8 + [[('cat', box), ('dog', [20, 20, 120, 150])]]


REPORTS: Dict[str, Report] = {
    'mmdetection#4828': Report(
        ('MG203', 'MG201'),
        coco_config(numbered(*THREE), None, faster(3)),
        CHECK,
        ('num_classes=80',),
    ),
    'mmdetection#8734': Report(('MG201',), coco_config({1: 'CP'}, ('CP',), faster(80)), CHECK),
    'mmdetection#9606': Report(('MG203', 'MG201'), in_the_wrapper, CHECK, ('num_classes=80',)),
    'mmdetection#6218': Report(('MG201',), coco_config(numbered(*THREE), THREE, cascade(3, 80)), CHECK),
    'mmdetection#9610': Report(('MG140',), coco_config(numbered(*THREE), ('Katze', 'Hund', 'Kuh'), faster(3))),
    'mmdetection#3068': Report(('MG160', 'MG202'), coco_config({1: 'ship'}, ('background', 'ship'), faster(2)), CHECK),
    'mmdetection#4327': Report(('MG201', 'MG108'), coco_config(numbered(*THREE), THREE, faster(2)), CHECK),
    'LiWentomng/BoxInstSeg#9': Report(('MG207',), box2mask, CHECK),
    'mmdetection#3397': Report(
        ('MG109', 'MG152'), voc_config(voc_with([-20, -13, 60, 80]), ('cat', 'dog'), faster(2)), never=("VOC's minus",)
    ),
    'mmdetection#2999': Report(
        ('MG109',),
        coco_config(
            numbered(*THREE),
            THREE,
            faster(3),
            [*some_boxes([1, 2, 3], 10), [(1, [330, 250, 20, 20])], [(2, [10, 240, 30, 9])]],
        ),
    ),
    'mmdetection#3563': Report(
        ('MG146',),
        coco_config(
            numbered(*THREE),
            THREE,
            cascade(3, 3),
            some_boxes([1, 2, 3], 10) + [[]] * 6,
            settings=dict(filter_cfg=dict(filter_empty_gt=False)),
            annotation=dict(segmentation=[[20, 20, 60, 20, 60, 60]]),
        ),
    ),
    'mmdetection#3212': Report(beside=f'{ERRORS_OF_REPORTS}: mmdetection#7116'),
    'mmdetection#1979': Report(
        ('MG146',),
        coco_config(
            numbered(*THREE),
            THREE,
            faster(3),
            some_boxes([1, 2, 3], 10) + [[]] * 4,
            settings=dict(filter_cfg=dict(filter_empty_gt=False)),
        ),
    ),
    'mmdetection#7116': Report(
        ('MG146',),
        coco_config(
            numbered(*THREE),
            THREE,
            retina(3),
            some_boxes([1, 2, 3], 10) + [[]] * 5,
            settings=dict(filter_cfg=dict(filter_empty_gt=False)),
        ),
    ),
    'mmdetection#2047': Report(('MG160',), json_alone(numbered('background', *(f'c{i}' for i in range(80))), 81)),
    'mmdetection#12009': Report(
        ('MG203', 'MG201'), coco_config(numbered(*THREE), None, retina(3)), CHECK, ('num_classes=80',)
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
    ),
    'lyuwenyu/RT-DETR#672': Report(('MG146',), detr(range(3), 3, 10)),
    'Peterande/D-FINE#81': Report(('MG146',), detr(range(3), 3, 3)),
    'facebookresearch/3detr#46': Report(('MG146',), detr(range(10), 10, 2)),
    'facebookresearch/maskrcnn-benchmark#497': Report(beside='unseen/kinds_logs.py: maskrcnn-benchmark#497'),
    'roboflow/rf-detr#1093': Report(beside='unseen/kinds_logs.py: rf-detr#1093'),
    'lyuwenyu/RT-DETR#70': Report(('MG138',), detr(range(1, 7), 6), says=('are used as labels',)),
    'lyuwenyu/RT-DETR#346': Report(('MG138',), detr(range(1, 11), 10)),
    'lyuwenyu/RT-DETR#99': Report(('MG162',), rt_detr({i: f'thing {i}' for i in range(5)}, 5, True)),
    'Intellindust-AI-Lab/DEIMv2#64': Report(('MG138',), detr(range(1, 16), 15)),
    'Peterande/D-FINE#89': Report(('MG138',), detr(range(1, 6), 5)),
    'roboflow/rf-detr#413': Report(('MG138', 'MG116'), detr((1, 2, 4, 7), 4)),
    'ArgoHA/D-FINE-seg#4': Report(('MG100',), detr(range(4), 4)),
    'kuangliu/pytorch-retinanet#24': Report(('MG117', 'MG138'), detr(COCO_IDS, 80)),
    'facebookresearch/detectron2#546': Report(('MG161', 'MG138'), json_alone(numbered('a', 'b', 'c', 'd'), 80)),
    'sovit-123/fasterrcnn-pytorch-training-pipeline#44': Report(('MG109',), voc(voc_with([50, 30, 50, 120]))),
    'endernewton/tf-faster-rcnn#107': Report(('MG109', 'MG152'), voc(voc_with([0, 0, 60, 80]))),
}
