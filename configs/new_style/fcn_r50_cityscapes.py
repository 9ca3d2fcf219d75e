"""FCN on Cityscapes in the pure-Python style, without guards; fcn_r50_cityscapes_guarded.py adds them."""

from mmcv.transforms import LoadImageFromFile, RandomFlip, RandomResize, Resize
from mmengine.dataset import DefaultSampler, InfiniteSampler
from mmengine.hooks import CheckpointHook, DistSamplerSeedHook, IterTimerHook, LoggerHook, ParamSchedulerHook
from mmengine.optim import OptimWrapper, PolyLR
from mmengine.runner import IterBasedTrainLoop, LogProcessor, TestLoop, ValLoop
from mmengine.visualization import LocalVisBackend
from mmseg.datasets import CityscapesDataset
from mmseg.datasets.transforms import LoadAnnotations, PackSegInputs, PhotoMetricDistortion, RandomCrop
from mmseg.evaluation import IoUMetric
from mmseg.models import CrossEntropyLoss, EncoderDecoder, FCNHead, ResNetV1c, SegDataPreProcessor
from mmseg.visualization import SegLocalVisualizer
from torch.nn import SyncBatchNorm
from torch.optim import SGD

default_scope = 'mmseg'
env_cfg = dict(
    cudnn_benchmark=True, mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0), dist_cfg=dict(backend='nccl')
)
log_processor = dict(type=LogProcessor, by_epoch=False)
vis_backends = [dict(type=LocalVisBackend)]
visualizer = dict(type=SegLocalVisualizer, vis_backends=vis_backends, name='visualizer')
default_hooks = dict(
    timer=dict(type=IterTimerHook),
    logger=dict(type=LoggerHook, interval=50, log_metric_by_epoch=False),
    param_scheduler=dict(type=ParamSchedulerHook),
    checkpoint=dict(type=CheckpointHook, by_epoch=False, interval=4000),
    sampler_seed=dict(type=DistSamplerSeedHook),
)

crop_size = (512, 1024)
norm_cfg = dict(type=SyncBatchNorm, requires_grad=True)
model = dict(
    type=EncoderDecoder,
    data_preprocessor=dict(
        type=SegDataPreProcessor,
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
        bgr_to_rgb=True,
        pad_val=0,
        seg_pad_val=255,
        size=crop_size,
    ),
    pretrained='open-mmlab://resnet50_v1c',
    backbone=dict(
        type=ResNetV1c,
        depth=50,
        num_stages=4,
        out_indices=(0, 1, 2, 3),
        dilations=(1, 1, 2, 4),
        strides=(1, 2, 1, 1),
        norm_cfg=norm_cfg,
        contract_dilation=True,
    ),
    decode_head=dict(
        type=FCNHead,
        in_channels=2048,
        in_index=3,
        channels=512,
        num_convs=2,
        num_classes=19,
        norm_cfg=norm_cfg,
        loss_decode=dict(type=CrossEntropyLoss, use_sigmoid=False, loss_weight=1.0),
    ),
    train_cfg=dict(),
    test_cfg=dict(mode='whole'),
)

train_pipeline = [
    dict(type=LoadImageFromFile),
    dict(type=LoadAnnotations),
    dict(type=RandomResize, scale=(2048, 1024), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type=RandomCrop, crop_size=crop_size, cat_max_ratio=0.75),
    dict(type=RandomFlip, prob=0.5),
    dict(type=PhotoMetricDistortion),
    dict(type=PackSegInputs),
]
test_pipeline = [
    dict(type=LoadImageFromFile),
    dict(type=Resize, scale=(2048, 1024), keep_ratio=True),
    dict(type=LoadAnnotations),
    dict(type=PackSegInputs),
]
train_dataloader = dict(
    batch_size=2,
    num_workers=2,
    persistent_workers=True,
    sampler=dict(type=InfiniteSampler, shuffle=True),
    dataset=dict(
        type=CityscapesDataset,
        data_root='data/cityscapes/',
        data_prefix=dict(img_path='leftImg8bit/train', seg_map_path='gtFine/train'),
        pipeline=train_pipeline,
    ),
)
val_dataloader = dict(
    batch_size=1,
    num_workers=4,
    persistent_workers=True,
    sampler=dict(type=DefaultSampler, shuffle=False),
    dataset=dict(
        type=CityscapesDataset,
        data_root='data/cityscapes/',
        data_prefix=dict(img_path='leftImg8bit/val', seg_map_path='gtFine/val'),
        pipeline=test_pipeline,
    ),
)
test_dataloader = val_dataloader
val_evaluator = dict(type=IoUMetric, iou_metrics=['mIoU'])
test_evaluator = val_evaluator

optim_wrapper = dict(type=OptimWrapper, optimizer=dict(type=SGD, lr=0.01, momentum=0.9, weight_decay=0.0005))
param_scheduler = [dict(type=PolyLR, eta_min=1e-4, power=0.9, begin=0, end=40000, by_epoch=False)]
train_cfg = dict(type=IterBasedTrainLoop, max_iters=40000, val_interval=4000)
val_cfg = dict(type=ValLoop)
test_cfg = dict(type=TestLoop)
