# DeepLabV3+ with online hard example mining on Cityscapes, guarded.
# The full path of 'mmseg::deeplabv3plus/...', because onedl's mmengine cannot resolve the short form.
_base_ = [
    __import__('mmseg').__path__[0] + '/.mim/configs/deeplabv3plus/deeplabv3plus_r50-d8_4xb2-40k_cityscapes-512x1024.py'
]

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 19
model = dict(
    decode_head=dict(
        # With a threshold the sampler gathers the scores by label, before the loss is called, and an invalid label
        # crashes it. So only the guard in the pipeline protects it.
        sampler=dict(type='OHEMPixelSampler', thresh=0.7, min_kept=100000),
        loss_decode=dict(type='GuardedCrossEntropyLoss'),
    ),
    auxiliary_head=dict(loss_decode=dict(type='GuardedCrossEntropyLoss')),
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=(2048, 1024), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=_base_.crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
    # Last, so that the guard sees the labels that the sampler and the losses get.
    dict(type='GuardSegLabels', num_classes=num_classes),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(2048, 1024), keep_ratio=True),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
    dict(type='GuardSegLabels', num_classes=num_classes),
]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
