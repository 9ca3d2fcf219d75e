"""Situations that show in an mmdet config together with its annotation files."""

from __future__ import annotations

from typing import Any, Dict

from annotation_files import VOC_GOOD, corners, normalised
from situation import (
    CE,
    Situation,
    coco_config,
    coco_data,
    coco_json,
    faster,
    numbered,
    retina,
    some_boxes,
    voc_config,
    write_config,
)

PETS = numbered('cat', 'dog', 'cow')
NAMES = ('cat', 'dog', 'cow')


def cascade(*classes: int) -> Dict[str, Any]:
    heads = [dict(type='Shared2FCBBoxHead', num_classes=number, loss_cls=CE) for number in classes]
    return dict(type='CascadeRCNN', roi_head=dict(type='CascadeRoIHead', num_stages=len(heads), bbox_head=heads))


def mask_rcnn(boxes: int, masks: int) -> Dict[str, Any]:
    model = faster(boxes)
    model['roi_head']['mask_head'] = dict(type='FCNMaskHead', num_classes=masks, loss_mask=CE)
    return model


def dino(num_classes: int) -> Dict[str, Any]:
    return dict(type='DINO', bbox_head=dict(type='DINOHead', num_classes=num_classes, loss_cls=dict(type='FocalLoss')))


def detr(num_classes: int, weights: Any) -> Dict[str, Any]:
    loss = {**CE, 'class_weight': weights}
    return dict(type='DETR', bbox_head=dict(type='DETRHead', num_classes=num_classes, loss_cls=loss))


def folder_twice(root: Any) -> Any:
    """file_name holds the folder, and so does data_prefix."""
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    data = coco_data(root, NAMES, data_prefix=dict(img='train/'))
    return write_config(root, default_scope='mmdet', model=retina(3), train_dataloader=dict(dataset=data)), {
        'splits': ('train',)
    }


def other_case_on_disk(root: Any) -> Any:
    """The camera wrote .JPG, the JSON says .jpg."""
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    for path in list((root / 'train').glob('*.jpg')):
        path.rename(path.with_suffix('.JPG'))
    data = coco_data(root, NAMES)
    return write_config(root, default_scope='mmdet', model=retina(3), train_dataloader=dict(dataset=data)), {
        'splits': ('train',)
    }


SITUATIONS: Dict[str, Situation] = {
    'pictures were resized afterwards': Situation(
        'the JSON knows 640 x 480, the files on disk have 320 x 240: boxes are in another scale',
        ('MG130',),
        coco_config(PETS, NAMES, retina(3), size=(640, 480), on_disk=(320, 240)),
        ('640',),
    ),
    'pictures are turned': Situation(
        'portrait on disk, landscape in the JSON',
        ('MG130',),
        coco_config(PETS, NAMES, retina(3), on_disk=(240, 320)),
        ('240',),
    ),
    'a class was forgotten in the list': Situation(
        'the file knows three categories, the config two, the head three: cows are trained as background',
        ('MG201', 'MG154'),
        coco_config(PETS, ('cat', 'dog'), retina(3)),
    ),
    'open-mmlab/mmdetection#11406': Situation(
        'need at least one array to concatenate: no metainfo, so the 80 names of COCO were looked for',
        ('MG140',),
        coco_config(numbered('bolt'), None, retina(1)),
        ("classes=('bolt',)",),
    ),
    'num_classes counts the background': Situation(
        'three classes, num_classes=4', ('MG202',), coco_config(PETS, NAMES, faster(4)), ('num_classes=3',)
    ),
    'num_classes left at 80': Situation(
        'the head kept 80', ('MG201',), coco_config(PETS, NAMES, retina(80)), ('num_classes=3',)
    ),
    'DETR: class_weight without no-object': Situation(
        'class_weight is a list of the weights of three classes and more; DETRHead makes that list itself',
        ('MG207',),
        coco_config(PETS, NAMES, detr(3, [1.0, 1.0, 1.0, 0.1, 0.1])),
        ('class_weight=1.0, bg_cls_weight=0.1',),
    ),
    'open-mmlab/mmdetection#2361': Situation(
        'training and validation JSON list the categories in different order',
        ('MG141',),
        coco_config(PETS, NAMES, retina(3), val=numbered('dog', 'cat', 'cow'), look_at='val'),
    ),
    'the validation keeps the names of COCO': Situation(
        'metainfo was given to the training alone',
        ('MG204',),
        coco_config(PETS, NAMES, retina(3), val=PETS, val_classes=('person', 'car', 'bus')),
        ('val_dataloader',),
    ),
    'all images are too small': Situation(
        'patches of 28 x 28, min_size=32',
        ('MG145',),
        coco_config(numbered('cell'), ('cell',), retina(1), [[(1, [2, 2, 9, 9])]] * 30, size=(28, 28)),
        ('min_size=1',),
    ),
    'boxes are corners': Situation(
        'x1, y1, x2, y2 in the JSON of an mmdet training',
        ('MG172',),
        coco_config(PETS, NAMES, retina(3), corners(some_boxes([1, 2, 3]))),
        ('x2 - x1',),
    ),
    'boxes are normalised': Situation(
        'divided by the size: mmdet leaves every box out as thinner than a pixel',
        ('MG173',),
        coco_config(PETS, NAMES, retina(3), normalised(some_boxes([1, 2, 3]))),
        ('width',),
    ),
    'every annotation is a crowd': Situation(
        'iscrowd=1 throughout: every image is filtered',
        ('MG174',),
        coco_config(PETS, NAMES, retina(3), annotation=dict(iscrowd=1)),
        ('iscrowd',),
    ),
    'the folder twice': Situation(
        'data_root and data_prefix name the same folder', ('MG150',), folder_twice, ('data_prefix=dict(img=',)
    ),
    'the ending in another case': Situation(
        '.JPG on disk, .jpg in the JSON', ('MG150',), other_case_on_disk, ('there is 0000.JPG',)
    ),
    'DINO with empty images': Situation(
        'filter_empty_gt=False, a fifth of the images is empty: a rank without targets has other losses',
        ('MG146',),
        coco_config(
            PETS,
            NAMES,
            dino(3),
            some_boxes([1, 2, 3], 20) + [[]] * 5,
            settings=dict(filter_cfg=dict(filter_empty_gt=False, min_size=32)),
        ),
        ('filter_empty_gt=True',),
    ),
    'open-mmlab/mmdetection#2365': Situation(
        'VOC format, own names, but the 20 names of VOC were kept',
        ('MG140',),
        voc_config([[('bolt', [20, 30, 90, 120])]] * 6, None, faster(1)),
        ("'bolt'",),
    ),
    'VOC: num_classes left at 20': Situation(
        'two names, the head kept 20', ('MG201',), voc_config(VOC_GOOD, ('cat', 'dog'), faster(20)), ('num_classes=2',)
    ),
}
