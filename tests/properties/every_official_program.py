"""Official configs of different heads: no property is broken but what was reviewed: ``make programs``."""

from __future__ import annotations

import time
from typing import Dict, Tuple

import pytest
from programs import tree_of

from mmguard.properties.suite import PROPERTIES, run_property
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

_WEIGHTS = 'class_weight is indexed with the ignored value (mmsegmentation#3724)'
#: Folder of a config and property -> part of the subjects that are broken in the framework itself, and how.
REVIEWED: Dict[Tuple[str, str], Tuple[str, str]] = {
    ('pidnet', 'first-batches'): ('batch 1 ', _WEIGHTS),
    ('pidnet', 'ignored-weigh-nothing'): ('the losses', _WEIGHTS),
    ('pidnet', 'batch-variants'): ('your first batch', _WEIGHTS),
}


@pytest.mark.timeout(1800)
@pytest.mark.parametrize('config', ALL)
def test_nothing_else_is_broken(config, record_property):
    tree = tree_of(config)
    folder = config.partition('::')[2].partition('/')[0]
    with Worker(forks=True) as worker:
        for name in PROPERTIES:
            tested = run_property(worker, tree, name, 300)
            record_property(name, 'late' if tested.is_late else tested.outcome)  # for --junitxml
            known = REVIEWED.get((folder, name), ('nothing', ''))[0]
            broken = [str(one) for one in tested.results if one.outcome == 'broken' and known not in one.subject]
            assert broken == []
        record_property('seconds', worker.ask(time.process_time, seconds=60).value)  # of the processor
