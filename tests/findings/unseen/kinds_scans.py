"""Kinds of causes that config and files show together: written down before any scan was run on them."""

from __future__ import annotations

from typing import Any, Dict

from drawn_scenes import VOID, scenes
from segmentation_configs import FIVE
from situation import CE, Situation, faster, seg_config, seg_model

DICE = dict(type='DiceLoss', loss_name='loss_dice')
IGNORED = scenes([0, 1, 2, 3, 4, VOID], 6)


def with_losses(*losses: Dict[str, Any]) -> Dict[str, Any]:
    return seg_model(5, dict(loss_decode=list(losses)))


def grid() -> Dict[str, Any]:
    model = faster(3)
    model['roi_head'] = {**model['roi_head'], 'type': 'GridRoIHead', 'grid_head': dict(type='GridHead')}
    return model


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
}
