# Panoptic FPN on COCO, guarded: instances and pixels.
_base_ = ['mmdet::panoptic_fpn/panoptic-fpn_r50_fpn_1x_coco.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_things_classes = 80
num_stuff_classes = 53
model = dict(
    rpn_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
    roi_head=dict(
        bbox_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
        mask_head=dict(loss_mask=dict(type='GuardedCrossEntropyLoss')),
    ),
    semantic_head=dict(loss_seg=dict(type='GuardedCrossEntropyLoss')),  # its ignore_index stays 255
    # The guard turns invalid instances into ignore regions, which the stock value -1 trains as background.
    train_cfg=dict(
        rpn=dict(assigner=dict(ignore_iof_thr=0.5)),
        rcnn=dict(assigner=dict(ignore_iof_thr=0.5)),
    ),
)

guards = [
    # Instances are things: 0..79.
    dict(type='GuardInstanceLabels', num_classes=num_things_classes),
    # The label map holds things and stuff, 0..132; the head merges the things into one class.
    dict(type='GuardSegLabels', num_classes=num_things_classes + num_stuff_classes),
]
# Last, so that the guards see the labels that the heads get. keep_ignored=False removes crowds, which the stock
# assigners do not use, so that valid labels train as with the stock config.
train_pipeline = [*_base_.train_pipeline, dict(guards[0], keep_ignored=False), guards[1]]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# CocoPanopticMetric takes its ground truth from the annotation files, so the guards only report here.
test_pipeline = [*_base_.test_pipeline, *guards]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
