# Mask R-CNN on COCO, guarded.
_base_ = ['mmdet::mask_rcnn/mask-rcnn_r50_fpn_1x_coco.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 80
model = dict(
    rpn_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
    roi_head=dict(
        bbox_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
        # mask_head picks the mask of the label's class.
        mask_head=dict(loss_mask=dict(type='GuardedCrossEntropyLoss')),
    ),
    # The guard turns invalid instances into ignore regions, which the stock value -1 trains as background.
    train_cfg=dict(
        rpn=dict(assigner=dict(ignore_iof_thr=0.5)),
        rcnn=dict(assigner=dict(ignore_iof_thr=0.5)),
    ),
)

guard = dict(type='GuardInstanceLabels', num_classes=num_classes)
# Last, so that the guard sees the labels that the heads get. keep_ignored=False removes crowds, which the stock
# assigners do not use, so that valid labels train as with the stock config.
train_pipeline = [*_base_.train_pipeline, dict(guard, keep_ignored=False)]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# CocoMetric takes its ground truth from the annotation file, so the guard only reports here.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
