"""Kinds of causes that config and files show together: written down before any scan was run on them."""

from __future__ import annotations

from typing import Any, Dict

from detection_configs import NAMES, PETS
from drawn_scenes import VOID, scenes
from segmentation_configs import FIVE
from situation import CE, Situation, coco_config, faster, retina, seg_config, seg_model, some_boxes

DICE = dict(type='DiceLoss', loss_name='loss_dice')
IGNORED = scenes([0, 1, 2, 3, 4, VOID], 6)
KEPT = dict(filter_cfg=dict(filter_empty_gt=False, min_size=32))


def with_losses(*losses: Dict[str, Any]) -> Dict[str, Any]:
    return seg_model(5, dict(loss_decode=list(losses)))


def grid() -> Dict[str, Any]:
    model = faster(3)
    model['roi_head'] = {**model['roi_head'], 'type': 'GridRoIHead', 'grid_head': dict(type='GridHead')}
    return model


EMPTY = [*some_boxes([1, 2, 3], 16), [], [], [], []]

KINDS: Dict[str, Situation] = {
    'DiceLoss beside cross entropy, void': Situation(
        'DiceLoss trains on ignored pixels',
        ('MG243',),
        seg_config(IGNORED, FIVE, with_losses(CE, DICE)),
        ('TverskyLoss',),
        ('GuardedLoss',),
    ),
    'DiceLoss alone, ignore_index written': Situation(
        'the same; its ignore_index does nothing',
        ('MG243',),
        seg_config(IGNORED, FIVE, with_losses({**DICE, 'ignore_index': 255})),
        ('DiceLoss',),
    ),
    'HuasdorffDisstanceLoss, void': Situation(
        'it trains ignored pixels as class 0',
        ('MG243',),
        seg_config(IGNORED, FIVE, with_losses(CE, dict(type='HuasdorffDisstanceLoss', loss_name='loss_hd'))),
        ('class 0',),
    ),
    'near: DiceLoss, nothing is ignored': Situation(
        'no pixel is ignored', ('MG100',), seg_config(scenes(range(5), 6), FIVE, with_losses(CE, DICE))
    ),
    'near: TverskyLoss, void': Situation(
        'it leaves ignored pixels out',
        ('MG100',),
        seg_config(IGNORED, FIVE, with_losses(CE, dict(type='TverskyLoss', loss_name='loss_tversky'))),
    ),
    'guarded DiceLoss, void': Situation(
        'the guard is transparent for ignored pixels: they are trained on as by the loss in it',
        ('MG243',),
        seg_config(IGNORED, FIVE, with_losses(CE, dict(type='GuardedLoss', loss=DICE))),
    ),
    'empty images, GridHead': Situation(
        'loss_grid is missing for a batch without objects',
        ('MG146',),
        coco_config(PETS, NAMES, grid(), EMPTY, settings=KEPT),
        ('filter_empty_gt=True', 'other losses'),
    ),
    'empty images, a head of the user': Situation(
        'nobody knows what it gives for them',
        ('MG146',),
        coco_config(
            PETS, NAMES, {**retina(3), 'bbox_head': {**retina(3)['bbox_head'], 'type': 'MyHead'}}, EMPTY, settings=KEPT
        ),
        ('other losses',),
    ),
    'near: empty images, RetinaHead': Situation(
        'it gives all losses for them',
        ('MG146', 'MG100'),
        coco_config(PETS, NAMES, retina(3), EMPTY, settings=KEPT),
        ('all losses',),
        ('has other losses',),
    ),
    'near: empty images, Faster R-CNN': Situation(
        'the same', ('MG146', 'MG100'), coco_config(PETS, NAMES, faster(3), EMPTY, settings=KEPT), ('all losses',)
    ),
}
