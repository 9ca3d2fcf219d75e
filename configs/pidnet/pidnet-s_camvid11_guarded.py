# PIDNet-S on an 11-class CamVid: the labels are 0..10, and 11 is void (unlabeled), which crashes stock losses.
#
#     data/camvid/train/*.png  data/camvid/trainannot/*.png  data/camvid/val/*.png  data/camvid/valannot/*.png
_base_ = ['./pidnet-s_cityscapes_guarded.py']

num_classes = 11
classes = (
    'sky',
    'building',
    'pole',
    'road',
    'pavement',
    'tree',
    'sign',
    'fence',
    'car',
    'pedestrian',
    'bicyclist',
)
palette = [
    [128, 128, 128],
    [128, 0, 0],
    [192, 192, 128],
    [128, 64, 128],
    [60, 40, 222],
    [128, 128, 0],
    [192, 128, 128],
    [64, 64, 128],
    [64, 0, 128],
    [64, 64, 0],
    [0, 128, 192],
]
class_weight = [1.0] * num_classes
crop_size = (320, 448)
data_preprocessor = dict(size=crop_size)

ohem = dict(type='GuardedOhemCrossEntropy', thres=0.9, min_kept=24000, class_weight=class_weight, loss_weight=1.0)
model = dict(
    data_preprocessor=data_preprocessor,
    decode_head=dict(
        num_classes=num_classes,
        loss_decode=[
            dict(type='GuardedCrossEntropyLoss', class_weight=class_weight, loss_weight=0.4, ignore_index=255),
            ohem,
            dict(type='GuardedBoundaryLoss', loss_weight=20.0),
            ohem,
        ],
    ),
)

# 11 is outside the classes 0..10. label_map turns it into 255, which GenerateEdge, the losses and IoUMetric ignore. As
# this is intended, the hook counts 11 as mapped, and reports only other invalid values.
guard = dict(type='GuardSegLabels', num_classes=num_classes, ignore_index=255, label_map={11: 255})

train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=(480, 360), ratio_range=(0.9, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=crop_size, cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    guard,
    dict(type='GenerateEdge', edge_width=4),
    # The same meta_keys as in the base, with 'label_guard', which passes the guard's report to the hook.
    dict(type='PackSegInputs', meta_keys=_base_.train_pipeline[-1].meta_keys),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='PackSegInputs'),
    guard,
]

dataset = dict(
    type='BaseSegDataset',
    data_root='data/camvid',
    img_suffix='.png',
    seg_map_suffix='.png',
    metainfo=dict(classes=classes, palette=palette),
)
train_dataloader = dict(
    batch_size=8,
    dataset=dict(
        _delete_=True,
        data_prefix=dict(img_path='train', seg_map_path='trainannot'),
        pipeline=train_pipeline,
        **dataset,
    ),
)
val_dataloader = dict(
    dataset=dict(
        _delete_=True,
        data_prefix=dict(img_path='val', seg_map_path='valannot'),
        pipeline=test_pipeline,
        **dataset,
    )
)
test_dataloader = val_dataloader
