"""Situations that show in an mmdet config, alone or together with its annotation files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from annotation_files import corners, normalised
from situation import (
    CE,
    CHECK,
    Build,
    Situation,
    coco_config,
    coco_data,
    coco_json,
    faster,
    numbered,
    old,
    retina,
    some_boxes,
    train_config,
    voc_config,
)

PETS = numbered('cat', 'dog', 'cow')
NAMES = ('cat', 'dog', 'cow')


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
    return train_config(root, retina(3), coco_data(root, NAMES, data_prefix=dict(img='train/')), 'mmdet')


def other_case_on_disk(root: Any) -> Any:
    """The camera wrote .JPG, the JSON says .jpg."""
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    for path in list((root / 'train').glob('*.jpg')):
        path.rename(path.with_suffix('.JPG'))
    return train_config(root, retina(3), coco_data(root, NAMES), 'mmdet')


def splits(model: Any, train: Any, val: Any) -> Build:
    """A config alone, with the class list of each split, or none."""
    return lambda root: train_config(
        root, model, coco_data(root, train), 'mmdet', val_dataloader=dict(dataset=coco_data(root, val, 'val'))
    )


def wrapped(root: Path) -> Any:
    """The class list at the outer one of two wrappers."""
    data = dict(type='ClassBalancedDataset', dataset=coco_data(root, None))
    outer = dict(type='RepeatDataset', dataset=data, classes=NAMES)
    return train_config(root, faster(3), outer, 'mmdet', val_dataloader=dict(dataset=coco_data(root, NAMES, 'val')))


def joined(root: Path) -> Any:
    """Two files that are trained together."""
    for name, categories in (('a', PETS), ('b', numbered('cow', 'cat', 'dog', start=0))):
        coco_json(root / name / 'ann.json', categories, some_boxes(list(categories), 6))
    both = dict(type='ConcatDataset', datasets=[coco_data(root, NAMES, name) for name in 'ab'])
    return train_config(root, retina(3), both, 'mmdet')


def with_masks(model: Any, **annotation: Any) -> Build:
    loads = [dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', with_bbox=True, with_mask=True)]
    return coco_config(PETS, NAMES, model, settings=dict(pipeline=loads), annotation=annotation)


def grid() -> Dict[str, Any]:
    model = faster(3)
    model['roi_head'] = {**model['roi_head'], 'type': 'GridRoIHead', 'grid_head': dict(type='GridHead')}
    return model


def crowds(alone_in: int, beside: int = 0) -> Build:
    """A file in which all objects of some images are crowds; the config leaves empty images out."""

    def change(data: Dict[str, Any]) -> None:
        for number, one in enumerate(data['annotations']):
            if one['image_id'] <= alone_in or (one['image_id'] <= alone_in + beside and number % 3 == 0):
                one['iscrowd'] = 1

    return coco_config(PETS, NAMES, grid(), some_boxes([1, 2, 3], 20), change=change)


SITUATIONS: Dict[str, Situation] = {
    'pictures were resized afterwards': Situation(
        'the JSON knows 640 x 480, the files on disk have 320 x 240: boxes are in another scale',
        ('MG130',),
        coco_config(PETS, NAMES, retina(3), size=(640, 480), on_disk=(320, 240)),
        seen=('0000.jpg',),
    ),
    'a class was forgotten in the list': Situation(
        'the file knows three categories, the config two, the head three: cows are trained as background',
        ('MG201', 'MG154'),
        coco_config(PETS, ('cat', 'dog'), retina(3)),
        first=dict(classes=NAMES),
    ),
    'open-mmlab/mmdetection#11406': Situation(
        'need at least one array to concatenate: no metainfo, so the 80 names of COCO were looked for',
        ('MG140',),
        coco_config(numbered('bolt'), None, retina(1)),
        first=dict(classes=('bolt',)),
    ),
    'DETR: class_weight without no-object': Situation(
        'class_weight is a list of the weights of three classes and more; DETRHead makes that list itself',
        ('MG207',),
        coco_config(PETS, NAMES, detr(3, [1.0, 1.0, 1.0, 0.1, 0.1])),
        first=dict(class_weight=1.0, bg_cls_weight=0.1),
    ),
    'all images are too small': Situation(
        'patches of 28 x 28, min_size=32',
        ('MG174',),
        coco_config(numbered('cell'), ('cell',), retina(1), [[(1, [2, 2, 9, 9])]] * 30, size=(28, 28)),
        first=dict(min_size=1),
    ),
    'boxes are corners': Situation(
        'x1, y1, x2, y2 in the JSON of an mmdet training',
        ('MG172',),
        coco_config(PETS, NAMES, retina(3), corners(some_boxes([1, 2, 3]))),
        first=dict(boxes='corners'),
    ),
    'boxes are normalised': Situation(
        'divided by the size: mmdet leaves every box out as thinner than a pixel',
        ('MG172',),
        coco_config(PETS, NAMES, retina(3), normalised(some_boxes([1, 2, 3]))),
        first=dict(boxes='fractions'),
    ),
    'every annotation is a crowd': Situation(
        'iscrowd=1 throughout: every image is filtered',
        ('MG174',),
        coco_config(PETS, NAMES, retina(3), annotation=dict(iscrowd=1)),
        first=dict(no_crowds=True),
    ),
    'the folder twice': Situation(
        'data_root and data_prefix name the same folder', ('MG150',), folder_twice, seen=('0000.jpg',)
    ),
    'the ending in another case': Situation(
        '.JPG on disk, .jpg in the JSON', ('MG150',), other_case_on_disk, seen=('0000.JPG',)
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
        first=dict(filter_empty_gt=True),
    ),
    'VOC: a tenth of the names is misspelt': Situation(
        '"helmt" in some XML files is silently left out',
        ('MG154', 'MG140'),
        voc_config(
            [[('helmet', [20, 30, 90, 120])]] * 9 + [[('helmt', [20, 30, 90, 120]), ('helmet', [5, 5, 60, 60])]],
            ('helmet',),
            faster(1),
        ),
        first=dict(rename={'helmt': 'helmet'}),
    ),
    'the validation falls back': Situation(
        'metainfo of the training alone',
        ('MG204',),
        splits(retina(3), NAMES, None),
        first=dict(classes=NAMES),
        seen=('val_dataloader',),
        command=CHECK,
    ),
    'classes at two wrappers': Situation(
        'wrappers take none', ('MG203',), wrapped, first=dict(classes=NAMES), command=CHECK
    ),
    'near: COCO itself': Situation('80 and 80', (), splits(retina(80), None, None), command=CHECK),
    'two files trained together': Situation(
        'the label of a class differs between the files', ('MG141', 'MG178'), joined, first=dict(classes=NAMES)
    ),
    'with_mask, boxes alone': Situation(
        'no mask anywhere',
        ('MG396',),
        with_masks(faster(3)),
        seen=('0000.jpg: annotation 1',),
    ),
    'ranks: crowds alone in five images of twenty': Situation(
        'loss_grid is missing for a batch of such images: crowds are no targets',
        ('MG146',),
        crowds(5),
        first=dict(drop_empty=True),
    ),
    'near: merely old': Situation('nothing else', ('MG227',), old(retina(3), 'mmdet', classes=NAMES), command=CHECK),
}
