"""A third round, as the second: written after all was sanitized, with its causes, before any scan was run on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict

from annotation_files import rewritten
from detection_configs import NAMES, PETS
from drawn_scenes import VOID, blob, save, scene, scenes
from situation import (
    CE,
    Situation,
    coco_config,
    coco_data,
    coco_json,
    faster,
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


def gif(root: Path) -> Any:
    """Carvana's masks are GIFs of 0 and 1."""
    save(root / 'masks', [blob(1, seed=s) for s in range(5)], ending='.gif', palette=[(0, 0, 0), (255, 255, 255)])
    return root / 'masks', dict(num_classes=2)


def categories_of_two_tools(data: Dict[str, Any]) -> None:
    """The second tool numbered from 0, the first from 1; merged."""
    for one in data['annotations'][18:]:
        one['category_id'] -= 1


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
    'GIF': Situation('0 and 1 in GIF files: fine', ('MG100',), gif),
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
    'two tools merged': Situation(
        'half of the annotations count from 0, half from 1; 0 is named by nobody',
        ('MG149',),
        rewritten(categories_of_two_tools, None, numbered('cat', 'dog', 'cow')),
        ('0',),
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
