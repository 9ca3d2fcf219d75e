# Mask R-CNN on COCO, guarded.
_base_ = ['mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 80
model = dict(
    rpn_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
    roi_head=dict(
        bbox_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
        # It picks the mask of the label's class.
        mask_head=dict(loss_mask=dict(type='GuardedCrossEntropyLoss')),
    ),
    # Stock, -1: ignore regions, which the guard makes of invalid instances, are trained as background.
    train_cfg=dict(
        rpn=dict(assigner=dict(ignore_iof_thr=0.5)),
        rcnn=dict(assigner=dict(ignore_iof_thr=0.5)),
    ),
)

guard = dict(type='GuardInstanceLabels', num_classes=num_classes)
# Last: it sees what the heads will see. Without crowds, which stock has no eye for, valid labels train as with stock.
train_pipeline = [*_base_.train_pipeline, dict(guard, keep_ignored=False)]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# CocoMetric takes its ground truth from the annotation file: the guard only reports here.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
