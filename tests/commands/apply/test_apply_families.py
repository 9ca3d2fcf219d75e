"""A config of each kind of architecture of both frameworks: what `mmguard apply` writes loads, builds, and is final."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, TRANSFORMS, init_default_scope
from this_stack import base_line

from mmguard.commands.apply.command import apply
from mmguard.commands.apply.guarded import build_tree
from mmguard.config.guards import guard_tree
from mmguard.config.tree import walk
from mmguard.nn.counting import CountsLabels

pytestmark = pytest.mark.slow

MMSEG = [
    'encnet/encnet_r50-d8_4xb2-40k_cityscapes-512x1024.py',
    'icnet/icnet_r50-d8_4xb2-80k_cityscapes-832x832.py',
    'knet/knet-s3_r50-d8_fcn_8xb2-adamw-80k_ade20k-512x512.py',
    'mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py',
    'maskformer/maskformer_r50-d32_8xb2-160k_ade20k-512x512.py',
    'ocrnet/ocrnet_hr18_4xb2-40k_cityscapes-512x1024.py',
    'pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py',
    'point_rend/pointrend_r50_4xb2-80k_cityscapes-512x1024.py',
]
MMDET = [
    'cascade_rcnn/cascade-mask-rcnn_r50_fpn_1x_coco.py',
    'centernet/centernet-update_r50-caffe_fpn_ms-1x_coco.py',
    'cornernet/cornernet_hourglass104_8xb6-210e-mstest_coco.py',
    'ddq/ddq-detr-4scale_r50_8xb2-12e_coco.py',
    'dino/dino-4scale_r50_8xb2-12e_coco.py',
    'faster_rcnn/faster-rcnn_r50_fpn_1x_coco.py',
    'htc/htc_r50_fpn_1x_coco.py',
    'mask2former/mask2former_r50_8xb2-lsj-50e_coco-panoptic.py',
    'panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py',
    'queryinst/queryinst_r50_fpn_1x_coco.py',
    'rtmdet/rtmdet_s_8xb32-300e_coco.py',
    'seesaw_loss/mask-rcnn_r50_fpn_seesaw-loss_random-ms-2x_lvis-v1.py',
    'soft_teacher/soft-teacher_faster-rcnn_r50-caffe_fpn_180k_semi-0.1-coco.py',
    'yolox/yolox_s_8xb8-300e_coco.py',
]
CONFIGS = [*(f'mmseg::{name}' for name in MMSEG), *(f'mmdet::{name}' for name in MMDET)]
#: These classify nothing with a loss that labels index: heat maps, quality scores.
DENSE_ONLY = ('cornernet', 'centernet-update')


@pytest.mark.slow
@pytest.mark.parametrize('source', CONFIGS)
def test_the_guarded_config_loads_builds_and_is_final(source: str, tmp_path: Path) -> None:
    out = tmp_path / 'guarded.py'
    assert apply(source, out) == 0
    assert base_line(source) in out.read_text()
    config = Config.fromfile(out)
    # Final: what is applied to the guarded config changes nothing.
    assert guard_tree(build_tree(config)).changed == []
    scope = source[:5]
    importlib.import_module(f'{scope}.utils').register_all_modules(init_default_scope=False)
    init_default_scope(scope)
    for _, node in walk(config.model):
        node.update({key: None for key in ('init_cfg', 'pretrained') if key in node})
    with torch.device('meta'):  # no memory, no time
        model = MODELS.build(config.model)
    guarded = [name for name, part in model.named_modules() if isinstance(part, CountsLabels)]
    assert guarded or any(name in source for name in DENSE_ONLY)
    found = 0
    for mode in ('train', 'val', 'test'):
        for pipeline in [node['pipeline'] for _, node in walk(config.get(f'{mode}_dataloader')) if 'pipeline' in node]:
            for step in pipeline:
                if step['type'] != 'LoadPanopticAnnotations':  # needs panopticapi
                    TRANSFORMS.build(step)
            found += 'GuardSegLabels' in str(pipeline) or 'GuardInstanceLabels' in str(pipeline)
    assert found >= 3
