# Mask2Former on Cityscapes, guarded.
# The full path of 'mmseg::mask2former/...', because onedl's mmengine cannot resolve the short form.
_base_ = [__import__('mmseg').__path__[0] + '/.mim/configs/mask2former/mask2former_r50_8xb2-90k_cityscapes-512x1024.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

# The head makes one mask per label of an image and looks up class_weight[labels] before any loss is called, and an
# invalid label crashes it. So only the guard in the pipeline protects it.
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(
        type='RandomChoiceResize',
        scales=[int(1024 * x * 0.1) for x in range(5, 21)],
        resize_type='ResizeShortestEdge',
        max_size=4096,
    ),
    dict(type='RandomCrop', crop_size=_base_.crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
    # Last, so that the guard sees the labels that the head gets.
    dict(type='GuardSegLabels', num_classes=_base_.num_classes),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(2048, 1024), keep_ratio=True),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
    dict(type='GuardSegLabels', num_classes=_base_.num_classes),
]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader

# The losses are mmdet's, so the types need mmdet's scope. loss_cls classifies queries (20 channels, the last is "no
# object"), loss_mask is binary; both keep all other arguments. loss_dice compares masks, so it needs no guard.
model = dict(
    decode_head=dict(
        loss_cls=dict(type='mmdet.GuardedCrossEntropyLoss'),
        loss_mask=dict(type='mmdet.GuardedCrossEntropyLoss'),
    )
)
