"""A third round, as the second: written after all was sanitized, with its causes, before any scan was run on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

import numpy as np
from annotation_files import rewritten
from detection_configs import NAMES, PETS
from drawn_scenes import VOID, blob, coloured, each, objects, save, save_photos, scene, scenes, soft
from mask_values import blobs
from PIL import Image
from situation import (
    CE,
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
    voc_config,
    with_options,
    write_config,
)

FIVE = ['road', 'house', 'tree', 'car', 'sky']
RED_MASK = [(0, 0, 0), (255, 0, 0)]
TRAFFIC = [(0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 255, 0)]


def jpeg_colours(root: Path) -> Any:
    """Colour masks, sent through a messenger: JPEG."""
    save(root / 'masks', each(scenes(range(4), 5), lambda x: coloured(x, TRAFFIC)), ending='.jpg', quality=80)
    save_photos(root / 'photos', 5)
    return root / 'masks', dict(num_classes=4, images=str(root / 'photos'))


def webp(root: Path) -> Any:
    save(root / 'masks', scenes([0, 60, 120, 180], 5), ending='.webp', quality=80)
    return root / 'masks', dict(num_classes=4)


def gif(root: Path) -> Any:
    """Carvana's masks are GIFs of 0 and 1."""
    save(root / 'masks', [blob(1, seed=s) for s in range(5)], ending='.gif', palette=[(0, 0, 0), (255, 255, 255)])
    return root / 'masks', dict(num_classes=2)


def several_labels_for_an_image(root: Path) -> Any:
    """a.png and a.bmp in one folder: the second export did not remove the first."""
    save(root / 'masks', scenes(range(5), 5))
    save(root / 'masks', scenes(range(5), 2), ending='.bmp')
    return root / 'masks', dict(num_classes=5)


def coco_of_one_class(annotated: int, **more: Any) -> Any:
    return json_alone({1: 'ship'}, 2, some_boxes([1], annotated, 2) + [[]] * (40 - annotated), **more)


def categories_of_two_tools(data: Dict[str, Any]) -> None:
    """The second tool numbered from 0, the first from 1; merged."""
    for one in data['annotations'][18:]:
        one['category_id'] -= 1


def two_val_lists(root: Path) -> Any:
    """metainfo of the validation has one name less."""
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    coco_json(root / 'val/ann.json', PETS, some_boxes([1, 2, 3], 4))
    parts = dict(
        train_dataloader=dict(dataset=coco_data(root, NAMES)),
        val_dataloader=dict(dataset=coco_data(root, NAMES[:2], 'val', test_mode=True)),
    )
    return write_config(root, default_scope='mmdet', model=retina(3), **parts), dict(splits=('val',))


def wrapped(root: Path) -> Any:
    """metainfo stands in ClassBalancedDataset, where nobody reads it."""
    coco_json(root / 'train/ann.json', PETS, some_boxes([1, 2, 3]))
    outer = dict(
        type='ClassBalancedDataset', oversample_thr=0.1, dataset=coco_data(root, None), metainfo=dict(classes=NAMES)
    )
    return write_config(root, default_scope='mmdet', model=retina(3), train_dataloader=dict(dataset=outer)), {
        'splits': ('train',)
    }


SITUATIONS: Dict[str, Situation] = {
    'colour masks as JPEG': Situation(
        'drawn in four colours, saved as JPEG: no colour is exact', ('MG120', 'MG136'), jpeg_colours, ('PNG',), ('lfs',)
    ),
    'gray levels as WebP': Situation('lossy WebP of gray levels', ('MG136',), webp, ('PNG',)),
    'GIF': Situation('0 and 1 in GIF files: fine', ('MG100',), gif),
    'red objects': Situation(
        'the object is drawn in pure red',
        ('MG120',),
        masks(each(blobs(1, 6), lambda x: coloured(x, RED_MASK)), 2),
        ('(255, 0, 0): 1',),
    ),
    'two exports in one folder': Situation('two files of one name', ('MG129',), several_labels_for_an_image),
    '1-based with void 255': Situation(
        '1..5 and 255, five classes', ('MG115',), masks(scenes([1, 2, 3, 4, 5, VOID], 6), 5), ('label_map=',)
    ),
    'foreground 2 of trimaps': Situation(
        'Oxford pets: 1 pet, 2 background, 3 border, three classes',
        ('MG115',),
        masks(scenes([1, 2, 3], 8), 3),
        ('3',),
    ),
    'trimaps, two classes': Situation(
        'Oxford pets with num_classes=2: 3 is the border, 1 and 2 are the classes',
        ('MG115',),
        masks(scenes([1, 2, 3], 8), 2),
        ('1..3',),
    ),
    'trimaps in gray': Situation(
        '0, 128 and 255 mean background, unknown, object', ('MG125',), masks(scenes([0, 128, 255], 6), 3), ('128: 1',)
    ),
    'binary, drawn in 254': Situation(
        'a tool wrote 254 for the object', ('MG125', 'MG133', 'MG107'), masks(blobs(254, 6), 2), ('254: 1',)
    ),
    'binary, drawn in 1, 2 and 3': Situation(
        'the value is the number of the annotator: three annotators, one object each',
        ('MG107', 'MG170'),
        masks(blobs(1, 6) + blobs(2, 6, first=6) + blobs(3, 6, first=12), 2),
    ),
    'cells, 16 bits': Situation(
        'instance maps of 16 bits with up to 45 objects',
        ('MG170', 'MG122'),
        masks([objects(n, n).astype(np.uint16) for n in (45, 20, 31, 44, 8)], 2),
        ('> 0',),
    ),
    'averaged, then rounded': Situation(
        'resized with averaging: 0 and 2 give 1, which is a class; void gives the rest',
        ('MG136',),
        masks(each(scenes([0, 2, VOID], 6), soft), 3),
        ('INTER_NEAREST',),
    ),
    'rotated with averaging': Situation(
        'rotated offline by a few degrees with bilinear interpolation',
        ('MG136',),
        masks([np.asarray(Image.fromarray(x).rotate(7, Image.BILINEAR)) for x in scenes([0, 1, 2, 3, VOID], 6)], 4),
        ('nearest',),
    ),
    'ignore_index=255 and class 255 of 256': Situation(
        'reduce_zero_label on a binary mask of 0 and 255: everything is ignored',
        ('MG103', 'MG128'),
        with_options(masks(blobs(255, 6), 2), reduce_zero_label=True),
        ('255',),
    ),
    'label_map in the wrong order': Situation(
        'the map names raw values 1, 2, 7, but reduce_zero_label subtracts first',
        ('MG126',),
        with_options(masks(scenes([0, 1, 2, 7], 6), 3), reduce_zero_label=True, label_map=((1, 0), (2, 1), (7, 2))),
        ('label_map=',),
    ),
    'label_map to 3 of three classes': Situation(
        'the map itself leads out of the classes',
        ('MG212',),
        with_options(masks(scenes([0, 7, 8, 11], 6), 3), label_map=((7, 1), (8, 2), (11, 3))),
        ('11',),
    ),
    'auxiliary head of another ignore_index': Situation(
        'ignore_index=0 in the auxiliary head alone',
        ('MG209', 'MG208'),
        seg_config(
            scenes([0, 1, 2, 3, 4, VOID], 5),
            FIVE,
            seg_model(5, auxiliary_head=dict(type='FCNHead', num_classes=5, ignore_index=0, loss_decode=CE)),
        ),
        ('auxiliary_head',),
    ),
    'weights in a list of losses': Situation(
        'the second of two losses has four weights for five classes',
        ('MG207',),
        seg_config(scenes(range(5), 5), FIVE, seg_model(5, dict(loss_decode=[CE, {**CE, 'class_weight': [1.0] * 4}]))),
        ('loss_decode[1]',),
    ),
    'Mask2Former: weights without no-object': Situation(
        'class_weight of loss_cls has as many entries as classes',
        ('MG207',),
        seg_config(
            scenes(range(5), 5),
            FIVE,
            dict(
                type='EncoderDecoder',
                decode_head=dict(
                    type='Mask2FormerHead',
                    num_classes=5,
                    loss_cls=dict(type='mmdet.CrossEntropyLoss', class_weight=[1.0] * 5),
                ),
            ),
        ),
        ('[1.0] * 5 + [0.1]',),
    ),
    'LEVIR-Ship': Situation('half of the pictures are empty', ('MG146',), coco_of_one_class(20), ('zero losses',)),
    'two tools merged': Situation(
        'half of the annotations count from 0, half from 1; 0 is named by nobody',
        ('MG149',),
        rewritten(categories_of_two_tools, None, numbered('cat', 'dog', 'cow')),
        ('0',),
    ),
    'the validation knows fewer classes': Situation(
        'metainfo of the validation lacks the last name', ('MG204', 'MG201'), two_val_lists, ('val_dataloader',)
    ),
    'metainfo in the wrapper': Situation(
        'metainfo given to ClassBalancedDataset does not reach the data set', ('MG203', 'MG140'), wrapped, ("'cat'",)
    ),
    'Faster R-CNN of 81': Situation(
        'num_classes=81 as in mmdet 1.x, the 80 classes of COCO',
        ('MG202', 'MG201'),
        coco_config({i: f'c{i}' for i in range(1, 81)}, tuple(f'c{i}' for i in range(1, 81)), faster(81)),
        ('num_classes=80',),
    ),
    'VOC: a tenth of the names is misspelt': Situation(
        '"helmt" in some XML files is left out without a word',
        ('MG154', 'MG140'),
        voc_config(
            [[('helmet', [20, 30, 90, 120])]] * 9 + [[('helmt', [20, 30, 90, 120]), ('helmet', [5, 5, 60, 60])]],
            ('helmet',),
            faster(1),
        ),
        ("'helmt'",),
    ),
    'one picture of another size': Situation(
        'one of the pictures was cropped after it was annotated', ('MG175',), lambda root: _cropped(root), ('1 of 12',)
    ),
    'fp16 and class weights': Situation(
        'labels without void, class weights: padding brings 255',
        ('MG214',),
        seg_config(scenes(range(5), 5), FIVE, seg_model(5, dict(loss_decode={**CE, 'class_weight': [1.0] * 5}))),
        ('GuardedCrossEntropyLoss',),
    ),
    'everything is right': Situation(
        'nothing is wrong; the crash is a broken mmcv',
        ('MG100',),
        masks([scene(range(19), s) for s in range(4)], 19),
        ('mmguard env',),
    ),
}


def _cropped(root: Path) -> Any:
    coco_json(root / 'coco/train.json', PETS, some_boxes([1, 2, 3]))
    Image.new('RGB', (300, 200)).save(root / 'coco/0004.jpg')
    return root / 'coco/train.json', dict(images=str(root / 'coco'))
