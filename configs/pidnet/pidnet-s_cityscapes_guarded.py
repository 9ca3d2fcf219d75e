# PIDNet-S on Cityscapes: mmseg's config with all losses and pipelines guarded.
# The full path of 'mmseg::pidnet/...', because onedl's mmengine cannot resolve the short form.
_base_ = [__import__('mmseg').__path__[0] + '/.mim/configs/pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 19
class_weight = _base_.class_weight

# All four losses index by label: type X becomes GuardedX.
ohem = dict(type='GuardedOhemCrossEntropy', thres=0.9, min_kept=131072, class_weight=class_weight, loss_weight=1.0)
model = dict(
    decode_head=dict(
        loss_decode=[
            # 255 is not trained on (the head also passes its own ignore_index to the loss).
            dict(type='GuardedCrossEntropyLoss', class_weight=class_weight, loss_weight=0.4, ignore_index=255),
            ohem,
            dict(type='GuardedBoundaryLoss', loss_weight=20.0),
            ohem,
        ]
    )
)

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=(2048, 1024), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=_base_.crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    # Before GenerateEdge, so that no edges are drawn around invalid pixels ...
    dict(type='GuardSegLabels', num_classes=num_classes),
    dict(type='GenerateEdge', edge_width=4),
    # ... and 'label_guard' in meta_keys, so that PackSegInputs passes the guard's report to the hook.
    dict(
        type='PackSegInputs',
        meta_keys=(
            'img_path',
            'seg_map_path',
            'ori_shape',
            'img_shape',
            'pad_shape',
            'scale_factor',
            'flip',
            'flip_direction',
            'reduce_zero_label',
            'label_guard',
        ),
    ),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# An invalid label in the validation set would count as a false positive of the predicted class.
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='Resize', scale=(2048, 1024), keep_ratio=True),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
    dict(type='GuardSegLabels', num_classes=num_classes),
]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
