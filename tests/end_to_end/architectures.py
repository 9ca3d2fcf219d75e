"""Official configs that hold, together, every head of mmseg and every detector of mmdet; each made small.

Weights, head, losses, assigners and samplers stay those of the config. The data set is tiny and holds known invalid
labels.
"""

from __future__ import annotations

import os.path as osp
import uuid
from collections import Counter
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

import mmdet
import mmseg
import numpy as np
import torch
from label_files import write
from mmcv.transforms import BaseTransform
from mmdet.registry import TRANSFORMS
from mmengine.config import Config
from small_det_data import IMAGES, make_coco, make_panoptic
from small_det_runs import LoadPanopticAnnotationsHere
from small_runs import TRAIN_IMAGES, _without_sync, invalid_values, label_map, write_pair

ITERATIONS = 2
CLASSES = 80
#: Image -> labels that are written over those of its first objects. ``None``: of all of them.
PLANTED_LABELS: Dict[int, Optional[Sequence[int]]] = {1: (CLASSES,), 3: (-1, CLASSES + 7), 6: (200,), 4: None}
#: The image whose last object gets a box without area.
PLANTED_BOX = 2
#: A block of an invalid value in the label maps of detectors that have any.
PLANTED_PIXELS = (250, (15, 21))

#: Every head, and every segmentor and detector, is in one of these.
CONFIGS = {
    'mmseg': """
        ann/ann_r50-d8_4xb4-80k_ade20k-512x512 apcnet/apcnet_r50-d8_4xb4-80k_ade20k-512x512
        ccnet/ccnet_r50-d8_4xb4-80k_ade20k-512x512 danet/danet_r50-d8_4xb4-80k_ade20k-512x512
        ddrnet/ddrnet_23_in1k-pre_2xb6-120k_cityscapes-1024x1024 deeplabv3/deeplabv3_r50-d8_4xb4-80k_ade20k-512x512
        deeplabv3plus/deeplabv3plus_r18-d8_4xb4-80k_isaid-896x896 dmnet/dmnet_r50-d8_4xb4-80k_ade20k-512x512
        dnlnet/dnl_r50-d8_4xb4-80k_ade20k-512x512 dpt/dpt_vit-b16_8xb2-160k_ade20k-512x512
        emanet/emanet_r50-d8_4xb2-80k_cityscapes-769x769 encnet/encnet_r50-d8_4xb4-80k_ade20k-512x512
        fastscnn/fast_scnn_8xb4-160k_cityscapes-512x1024 gcnet/gcnet_r50-d8_4xb4-80k_ade20k-512x512
        isanet/isanet_r50-d8_4xb4-80k_ade20k-512x512 knet/knet-s3_r50-d8_fcn_8xb2-adamw-80k_ade20k-512x512
        mask2former/mask2former_r50_8xb2-160k_ade20k-512x512 maskformer/maskformer_r50-d32_8xb2-160k_ade20k-512x512
        mobilenet_v3/mobilenet-v3-d8_lraspp_4xb4-320k_cityscapes-512x1024
        nonlocal_net/nonlocal_r50-d8_4xb4-80k_ade20k-512x512 ocrnet/ocrnet_hr18_4xb4-80k_ade20k-512x512
        pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes point_rend/pointrend_r50_4xb4-160k_ade20k-512x512
        psanet/psanet_r50-d8_4xb4-80k_ade20k-512x512 pspnet/pspnet_r18-d8_4xb4-80k_isaid-896x896
        san/san-vit-b16_voc12aug-640x640 segformer/segformer_mit-b0_8xb2-160k_ade20k-512x512
        segmenter/segmenter_vit-s_mask_8xb1-160k_ade20k-512x512
        segnext/segnext_mscan-s_1xb16-adamw-160k_ade20k-512x512 sem_fpn/fpn_r50_4xb4-160k_ade20k-512x512
        setr/setr_vit-l-mla_8xb1-160k_ade20k-512x512 setr/setr_vit-l_pup_8xb2-160k_ade20k-512x512
        stdc/stdc1_4xb12-80k_cityscapes-512x1024 upernet/upernet_r18_4xb4-80k_ade20k-512x512
    """,
    'mmdet': """
        atss/atss_r50_fpn_1x_coco autoassign/autoassign_r50-caffe_fpn_1x_coco boxinst/boxinst_r50_fpn_ms-90k_coco
        cascade_rpn/cascade-rpn_faster-rcnn_r50-caffe_fpn_1x_coco centernet/centernet-update_r50-caffe_fpn_ms-1x_coco
        centernet/centernet_r18_8xb16-crop512-140e_coco
        centripetalnet/centripetalnet_hourglass104_16xb6-crop511-210e-mstest_coco
        condinst/condinst_r50_fpn_ms-poly-90k_coco_instance conditional_detr/conditional-detr_r50_8xb2-50e_coco
        convnext/cascade-mask-rcnn_convnext-s-p4-w7_fpn_4conv1fc-giou_amp-ms-crop-3x_coco
        cornernet/cornernet_hourglass104_8xb6-210e-mstest_coco crowddet/crowddet-rcnn_r50_fpn_8xb2-30e_crowdhuman
        dab_detr/dab-detr_r50_8xb2-50e_coco ddod/ddod_r50_fpn_1x_coco ddq/ddq-detr-4scale_r50_8xb2-12e_coco
        deformable_detr/deformable-detr_r50_16xb2-50e_coco detr/detr_r18_8xb2-500e_coco
        dino/dino-4scale_r50_8xb2-12e_coco double_heads/dh-faster-rcnn_r50_fpn_1x_coco
        dynamic_rcnn/dynamic-rcnn_r50_fpn_1x_coco fast_rcnn/fast-rcnn_r50_fpn_1x_coco
        faster_rcnn/faster-rcnn_r50_fpn_fcos-rpn_1x_coco fcos/fcos_r50-caffe_fpn_gn-head_1x_coco
        foveabox/fovea_r50_fpn_4xb4-1x_coco free_anchor/freeanchor_r50_fpn_1x_coco fsaf/fsaf_r50_fpn_1x_coco
        gfl/gfl_r50_fpn_1x_coco ghm/retinanet_r50_fpn_ghm-1x_coco glip/glip_atss_swin-t_a_fpn_dyhead_pretrain_obj365
        gn+ws/faster-rcnn_r50_fpn_gn-ws-all_1x_coco grid_rcnn/grid-rcnn_r50_fpn_gn-head_1x_coco
        grounding_dino/grounding_dino_r50_scratch_8xb2_1x_coco guided_anchoring/ga-retinanet_r50_fpn_1x_coco
        guided_anchoring/ga-rpn_r50_fpn_1x_coco htc/htc_r50_fpn_1x_coco lad/lad_r101-paa-r50_fpn_2xb8_coco_1x
        ld/ld_r18-gflv1-r101_fpn_1x_coco mask2former/mask2former_r50_8xb2-lsj-50e_coco
        mask_rcnn/mask-rcnn_r50_fpn_1x_coco maskformer/maskformer_r50_ms-16xb1-75e_coco
        misc/d2_mask-rcnn_r50-caffe_fpn_ms-90k_coco ms_rcnn/ms-rcnn_r50_fpn_1x_coco
        nas_fcos/nas-fcos_r50-caffe_fpn_nashead-gn-head_4xb4-1x_coco nas_fpn/retinanet_r50_fpn_crop640-50e_coco
        paa/paa_r50_fpn_1x_coco pafpn/faster-rcnn_r50_pafpn_1x_coco panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco
        pisa/mask-rcnn_r50_fpn_pisa_1x_coco pisa/retinanet-r50_fpn_pisa_1x_coco pisa/ssd300_pisa_coco
        point_rend/point-rend_r50-caffe_fpn_ms-1x_coco queryinst/queryinst_r50_fpn_1x_coco
        reppoints/reppoints-moment_r50_fpn_1x_coco rpn/rpn_r50_fpn_1x_coco rtmdet/rtmdet-ins_l_8xb32-300e_coco
        rtmdet/rtmdet_l_8xb32-300e_coco sabl/sabl-cascade-rcnn_r50_fpn_1x_coco sabl/sabl-faster-rcnn_r50_fpn_1x_coco
        sabl/sabl-retinanet_r50_fpn_1x_coco scnet/scnet_r50_fpn_1x_coco
        soft_teacher/soft-teacher_faster-rcnn_r50-caffe_fpn_180k_semi-0.1-coco
        solo/decoupled-solo-light_r50_fpn_3x_coco solo/decoupled-solo_r50_fpn_1x_coco solo/solo_r50_fpn_1x_coco
        solov2/solov2_r50_fpn_1x_coco sparse_rcnn/sparse-rcnn_r50_fpn_1x_coco ssd/ssd300_coco tood/tood_r50_fpn_1x_coco
        tridentnet/tridentnet_r50-caffe_1x_coco vfnet/vfnet_r50_fpn_1x_coco yolact/yolact_r50_1xb8-55e_coco
        yolo/yolov3_d53_8xb8-320-273e_coco yolof/yolof_r50-c5_8xb8-1x_coco yolox/yolox_l_8xb8-300e_coco
    """,
}
#: Side of the images, where the layers of a model do not leave any pixel of the usual 128 (pixels: 64).
SIDES = {'ssd': 300, 'ddod': 384, 'lraspp': 400}

#: Modules of mmseg and mmdet that hold heads, segmentors and detectors.
PACKAGES = ('decode_heads', 'segmentors', 'detectors', 'dense_heads', 'roi_heads', 'seg_heads')
#: Registered classes there that no official config names: they are only inherited from, or train on depth.
BASES = {
    'mmseg': {'DepthEstimator', 'SegTTAModel', 'VPDDepthHead'},
    'mmdet': {
        'AnchorFreeHead',
        'AnchorHead',
        'BasePanopticFusionHead',
        'BaseSemanticHead',
        'DetectionTransformer',
        'GuidedAnchorHead',
        'RTMDetHead',
        'RTMDetInsHead',
        'SemiBaseDetector',
        'SingleStageInstanceSegmentor',
        'TwoStageDetector',
        'TwoStagePanopticSegmentor',
    },
}


class Architecture(NamedTuple):
    """A config of a framework.

    Attributes:
        scope (str): ``'mmseg'`` or ``'mmdet'``.
        name (str): Folder and file, without its suffix.
    """

    scope: str
    name: str

    def __str__(self) -> str:
        return f'{self.scope}/{self.name}'

    def load(self) -> Config:
        return Config.fromfile(str(CONFIG_FOLDERS[self.scope] / f'{self.name}.py'), import_custom_modules=False)


CONFIG_FOLDERS = {
    name: Path(module.__file__).parent / '.mim' / 'configs' for name, module in (('mmseg', mmseg), ('mmdet', mmdet))
}
ALL = [Architecture(scope, name) for scope, names in CONFIGS.items() for name in names.split()]


def nodes_of(tree: Any) -> Iterator[Dict[str, Any]]:
    """Walk every dict in a config."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, (list, tuple)):
        for part in tree:
            yield from nodes_of(part)


# ---- data sets


# Under the name of mmdet's own, which needs panopticapi, so that a config is what its author would write.
TRANSFORMS.register_module(name='LoadPanopticAnnotations', module=LoadPanopticAnnotationsHere, force=True)


@TRANSFORMS.register_module()
class PlantLabels(BaseTransform):
    """Write known invalid labels, a box without area and a block of invalid pixels into a loaded sample."""

    def __init__(self, num_classes: int) -> None:
        self.num_classes = num_classes

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        number = int(Path(results['img_path']).stem)
        labels = results['gt_bboxes_labels'] % self.num_classes
        if number in PLANTED_LABELS:
            planted = PLANTED_LABELS[number]
            labels[: len(labels) if planted is None else len(planted)] = CLASSES if planted is None else planted
        results['gt_bboxes_labels'] = labels
        if number == PLANTED_BOX:
            results['gt_bboxes'].tensor[-1, 2] = results['gt_bboxes'].tensor[-1, 0]
        if 'gt_seg_map' in results:
            results['gt_seg_map'] = results['gt_seg_map'].copy()
            value, (height, width) = PLANTED_PIXELS
            results['gt_seg_map'][:height, :width] = value
        return results


@TRANSFORMS.register_module()
class ProposeBoxes(BaseTransform):
    """Propose the annotated boxes and others, in the place of a file of proposals."""

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        boxes = results['gt_bboxes'].tensor
        results['proposals'] = torch.cat([boxes + 2, torch.tensor([[0.0, 0.0, 60.0, 40.0], [5.0, 9.0, 70.0, 90.0]])])
        results['proposals_scores'] = torch.ones(len(results['proposals']))
        return results


def make_label_maps(root: str, num_classes: int, first: int) -> str:
    """Images and label maps; the labels in the files begin at ``first``. Some maps hold values without a class."""
    for number in range(TRAIN_IMAGES // 2):
        values = label_map(number, (), num_classes).astype(np.int64)
        values = np.where(values == 255, 255, values + first)
        for place in range(number):
            values[10 : 14 + number + 3 * place, 15 * place : 15 * place + 7] = (num_classes + first, 254)[place % 2]
        pair = (osp.join(root, folder, f'{number}.png') for folder in ('img', 'ann'))
        write_pair(*pair, values.astype(np.uint8), seed=number)
    return root


def count_pixels(root: str, num_classes: int, first: int) -> int:
    """Count the invalid pixels of all label maps, without any of mmguard's code."""
    return sum(
        count
        for file in Path(root, 'ann').iterdir()
        for value, count in invalid_values(str(file), num_classes + first).items()
        if int(value) != 255
    )


def make_objects(root: str) -> str:
    """COCO's layout with valid labels, crowds, and a label map (thing and stuff) per image."""
    make_coco(root, CLASSES, CLASSES, faults=())
    for number in range(IMAGES):
        path = Path(root, 'stuffthingmaps', 'train2017', f'{number:012d}.png')
        write(path, np.full((96, 96), number, np.uint8))
    return root


def count_instances() -> int:
    """Count what :class:`PlantLabels` plants into the images of :func:`small_det_runs.make_coco`."""
    objects = {1: 1, 3: 2, 6: 1, 4: 1}  # image 4 has one object, and that one is invalid
    return sum(objects.values()) + 1


# ---- small configs


def small_config(architecture: Architecture, root: str, work_dir: str) -> Tuple[Config, Dict[str, int]]:
    """Make a config trainable on a CPU within seconds, without any guard.

    Args:
        architecture (Architecture): The config.
        root (str): An empty folder for its data set.
        work_dir (str): Where the run may write.

    Returns:
        tuple: the config, and how many pixels and instances its training data hold that are invalid.
    """
    config = architecture.load()
    side = next((side for part, side in SIDES.items() if part in architecture.name), None)
    for node in nodes_of(config.model):
        _shrink(node, architecture.scope, side or (64 if architecture.scope == 'mmseg' else 128))
    _without_sync(config.model)
    make = _pixels if architecture.scope == 'mmseg' else _objects
    dataset, batch_size, expected = make(architecture, config, root, side)
    keep = {name: config[name] for name in ('model', 'custom_imports', 'find_unused_parameters') if name in config}
    return Config(
        dict(
            **keep,
            default_scope=architecture.scope,
            work_dir=work_dir,
            experiment_name=f'run-{uuid.uuid4().hex}',
            randomness=dict(seed=0),
            log_level='ERROR',
            log_processor=dict(by_epoch=False),
            default_hooks=dict(logger=dict(type='LoggerHook', interval=1, log_metric_by_epoch=False), checkpoint=None),
            visualizer=None,
            train_dataloader=dict(
                batch_size=batch_size,
                num_workers=0,
                sampler=dict(type='InfiniteSampler', shuffle=False),
                dataset=dataset,
            ),
            optim_wrapper=dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=1e-4)),
            train_cfg=dict(type='IterBasedTrainLoop', max_iters=ITERATIONS, val_interval=10_000),
        )
    ), expected


def _shrink(node: Dict[str, Any], scope: str, side: int) -> None:
    for name in ('pretrained', 'init_cfg', 'teacher_ckpt'):
        if name in node:
            node[name] = None
    kind = node.get('type')
    if kind in ('BatchFixedSizePad', 'BatchSyncRandomResize'):
        node['size' if 'size' in node else 'random_size_range'] = (side, side)
    if kind == 'SegDataPreProcessor':  # the config of upernet_r18 leaves the size out
        node['size'] = (side, side)
    for name, most in (('num_queries', 30), ('num_matching_queries', 20), ('num_proposals', 20)):
        if isinstance(node.get(name), int) and scope == 'mmdet':
            node[name] = min(node[name], most)
    if isinstance(node.get('num_layers'), int) and 'layer_cfg' in node:
        node['num_layers'] = min(node['num_layers'], 2)


def _pixels(
    architecture: Architecture, config: Config, root: str, side: Optional[int]
) -> Tuple[Dict[str, Any], int, Dict[str, int]]:
    heads = config.model.decode_head
    last = heads[-1] if isinstance(heads, (list, tuple)) else heads
    num_classes = next(node['num_classes'] for node in nodes_of(last) if 'num_classes' in node)
    pipeline = list(config.train_pipeline)
    load = next(step for step in pipeline if step['type'] == 'LoadAnnotations')
    reduced = bool(load.get('reduce_zero_label'))
    make_label_maps(root, num_classes, int(reduced))
    dataset = dict(
        type='BaseSegDataset',
        data_root=root,
        data_prefix=dict(img_path='img', seg_map_path='ann'),
        img_suffix='.png',
        reduce_zero_label=reduced,
        metainfo=dict(classes=tuple(f'class {label}' for label in range(num_classes))),
        pipeline=[
            dict(type='LoadImageFromFile'),
            dict(type='LoadAnnotations', reduce_zero_label=reduced),
            *(step for step in pipeline if step['type'] == 'GenerateEdge'),
            dict(type='PackSegInputs'),
        ],
    )
    return dataset, 2, dict(skipped_pixels=count_pixels(root, num_classes, int(reduced)), skipped_instances=0)


def _objects(
    architecture: Architecture, config: Config, root: str, side: Optional[int]
) -> Tuple[Dict[str, Any], int, Dict[str, int]]:
    text = str(config.train_dataloader)
    with_panoptic = 'LoadPanopticAnnotations' in text
    with_seg = "'with_seg': True" in text
    with_mask = "'with_mask': True" in text
    dataset = dict(
        type='CocoDataset',
        data_root=root,
        ann_file='annotations/instances_train2017.json',
        data_prefix=dict(img='train2017/', seg='stuffthingmaps/train2017/'),
        filter_cfg=dict(filter_empty_gt=False),
    )
    load: Dict[str, Any] = dict(type='LoadAnnotations', with_bbox=True, with_mask=with_mask, with_seg=with_seg)
    classes = CLASSES
    if with_panoptic:
        make_panoptic(root, 133, 133, faults=())
        classes, load = 133, dict(type='LoadPanopticAnnotations')
        dataset.update(
            type='CocoPanopticDataset',
            ann_file='annotations/panoptic_train2017.json',
            data_prefix=dict(img='train2017/', seg='annotations/panoptic_train2017/'),
        )
    else:
        make_objects(root)
    names = tuple(f'class {label}' for label in range(classes))
    dataset['metainfo'] = dict(classes=names)
    if with_panoptic:
        dataset['metainfo'].update(thing_classes=names[:CLASSES], stuff_classes=names[CLASSES:])
    scale = side or 128
    dataset['pipeline'] = [
        dict(type='LoadImageFromFile'),
        load,
        dict(type='PlantLabels', num_classes=1 if 'crowddet' in architecture.name else CLASSES),
        *([dict(type='ProposeBoxes')] if 'fast_rcnn' in architecture.name else []),
        *([dict(type='Resize', scale=(scale, scale))] if scale != 96 else []),
        dict(type='PackDetInputs'),
    ]
    height, width = PLANTED_PIXELS[1]
    pixels = IMAGES * height * width * scale**2 // 96**2 if with_seg or with_panoptic else 0
    return dataset, IMAGES // ITERATIONS, dict(skipped_pixels=pixels, skipped_instances=count_instances())


def skipped(lines: List[Dict[str, Any]]) -> Dict[str, int]:
    """Add up what the hook wrote about the iterations of a training."""
    counts: Counter = Counter(skipped_pixels=0, skipped_instances=0)
    for line in lines:
        counts.update({name: line.get(name, 0) for name in counts})
    return dict(counts)
