"""Official configs of different heads: broken is only what a stock training fails at, too: ``make programs``."""

from __future__ import annotations

import tempfile
import time
from typing import Any, Callable, Dict

import pytest
from mmengine.config import Config
from mmengine.runner import Runner
from programs import tree_of

from mmguard.properties.program import drop_pretrained
from mmguard.properties.suite import PROPERTIES, run_properties
from mmguard.properties.worker import Worker

pytestmark = pytest.mark.slow

CONFIGS = {
    'mmseg': """
        fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024 pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes
        mask2former/mask2former_r50_8xb2-160k_ade20k-512x512 maskformer/maskformer_r50-d32_8xb2-160k_ade20k-512x512
        segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512 upernet/upernet_r18_4xb4-80k_ade20k-512x512
        stdc/stdc1_4xb12-80k_cityscapes-512x1024 ocrnet/ocrnet_hr18_4xb4-80k_ade20k-512x512
        point_rend/pointrend_r50_4xb4-160k_ade20k-512x512 knet/knet-s3_r50-d8_fcn_8xb2-adamw-80k_ade20k-512x512
        encnet/encnet_r50-d8_4xb4-80k_ade20k-512x512 ddrnet/ddrnet_23_in1k-pre_2xb6-120k_cityscapes-1024x1024
        pspnet/pspnet_r18-d8_4xb4-80k_isaid-896x896 deeplabv3/deeplabv3_r50-d8_4xb4-80k_ade20k-512x512
        deeplabv3plus/deeplabv3plus_r18-d8_4xb4-80k_isaid-896x896 ann/ann_r50-d8_4xb4-80k_ade20k-512x512
        apcnet/apcnet_r50-d8_4xb4-80k_ade20k-512x512 ccnet/ccnet_r50-d8_4xb4-80k_ade20k-512x512
        danet/danet_r50-d8_4xb4-80k_ade20k-512x512 dmnet/dmnet_r50-d8_4xb4-80k_ade20k-512x512
        dnlnet/dnl_r50-d8_4xb4-80k_ade20k-512x512 dpt/dpt_vit-b16_8xb2-160k_ade20k-512x512
        emanet/emanet_r50-d8_4xb2-80k_cityscapes-769x769 fastscnn/fast_scnn_8xb4-160k_cityscapes-512x1024
        gcnet/gcnet_r50-d8_4xb4-80k_ade20k-512x512 isanet/isanet_r50-d8_4xb4-80k_ade20k-512x512
        mobilenet_v3/mobilenet-v3-d8_lraspp_4xb4-320k_cityscapes-512x1024
        nonlocal_net/nonlocal_r50-d8_4xb4-80k_ade20k-512x512 psanet/psanet_r50-d8_4xb4-80k_ade20k-512x512
        segmenter/segmenter_vit-s_mask_8xb1-160k_ade20k-512x512 segnext/segnext_mscan-s_1xb16-adamw-160k_ade20k-512x512
        sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512
    """,
    'mmdet': """
        retinanet/retinanet_r50_fpn_1x_coco mask_rcnn/mask-rcnn_r50_fpn_1x_coco dino/dino-4scale_r50_8xb2-12e_coco
        faster_rcnn/faster-rcnn_r50_fpn_1x_coco fcos/fcos_r50-caffe_fpn_gn-head_1x_coco yolox/yolox_s_8xb8-300e_coco
        detr/detr_r18_8xb2-500e_coco deformable_detr/deformable-detr_r50_16xb2-50e_coco
        rtmdet/rtmdet_tiny_8xb32-300e_coco atss/atss_r50_fpn_1x_coco cascade_rcnn/cascade-mask-rcnn_r50_fpn_1x_coco
        ssd/ssd300_coco solov2/solov2_r50_fpn_1x_coco yolof/yolof_r50-c5_8xb8-1x_coco gfl/gfl_r50_fpn_1x_coco
        vfnet/vfnet_r50_fpn_1x_coco tood/tood_r50_fpn_1x_coco sparse_rcnn/sparse-rcnn_r50_fpn_1x_coco
        queryinst/queryinst_r50_fpn_1x_coco htc/htc_r50_fpn_1x_coco yolo/yolov3_d53_8xb8-320-273e_coco
        centernet/centernet-update_r50-caffe_fpn_ms-1x_coco foveabox/fovea_r50_fpn_4xb4-1x_coco
        fsaf/fsaf_r50_fpn_1x_coco free_anchor/freeanchor_r50_fpn_1x_coco reppoints/reppoints-moment_r50_fpn_1x_coco
        grid_rcnn/grid-rcnn_r50_fpn_gn-head_1x_coco ms_rcnn/ms-rcnn_r50_fpn_1x_coco pafpn/faster-rcnn_r50_pafpn_1x_coco
        ddod/ddod_r50_fpn_1x_coco conditional_detr/conditional-detr_r50_8xb2-50e_coco
        dab_detr/dab-detr_r50_8xb2-50e_coco sabl/sabl-retinanet_r50_fpn_1x_coco
        libra_rcnn/libra-retinanet_r50_fpn_1x_coco double_heads/dh-faster-rcnn_r50_fpn_1x_coco
        dynamic_rcnn/dynamic-rcnn_r50_fpn_1x_coco
    """,
}
ALL = [f'{scope}::{name}.py' for scope, names in CONFIGS.items() for name in names.split()]


def train_stock(tree: Dict[str, Any]) -> None:
    """Train three iterations and validate, without mmguard; pretrained weights are left out."""
    config = Config(tree)
    config.model, _ = drop_pretrained(config.model)
    config.work_dir = tempfile.mkdtemp()
    config.train_cfg = dict(type='IterBasedTrainLoop', max_iters=3, val_interval=3)
    for split in ('train', 'val', 'test'):
        config[f'{split}_dataloader'].update(num_workers=0, persistent_workers=False)
    Runner.from_cfg(config).train()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize('config', ALL)
def test_broken_is_only_what_stock_fails_at(config: str, record_property: Callable[[str, object], None]) -> None:
    tree = tree_of(config)
    with Worker(forks=True) as worker:
        records = list(run_properties(worker, tree, list(PROPERTIES), 1200))
        record_property('seconds', worker.ask(time.process_time, seconds=60).value)  # of the processor
        for one in records:
            record_property(one.name, one.outcome)  # for --junitxml
        broken = [str(result) for one in records for result in one.results if result.outcome == 'broken']
        failure = worker.ask(train_stock, tree, seconds=1200).failure if broken else None
    assert [one for one in broken if failure is None or failure.message not in one] == []
