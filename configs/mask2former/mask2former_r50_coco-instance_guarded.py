# Mask2Former for instances on COCO, guarded.
_base_ = ['mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 80
# loss_cls classifies queries (81 channels, the last is "no object"), loss_mask is binary; both keep all other
# arguments. loss_dice compares masks, so it needs no guard.
model = dict(
    panoptic_head=dict(
        loss_cls=dict(type='GuardedCrossEntropyLoss'),
        loss_mask=dict(type='GuardedCrossEntropyLoss'),
    )
)

# 'drop', because the head has no ignore regions: a query without an object is "no object". The head does not use
# ignored instances, so 'ignore' would train the same and only look different. The matcher picks scores by label, and
# the head looks up class_weight[labels], before any loss is called, so only the guard in the pipeline protects them.
guard = dict(type='GuardInstanceLabels', num_classes=num_classes, on_invalid='drop')
train_pipeline = [*_base_.train_pipeline, guard]  # last, so that the guard sees the labels that the head gets
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# CocoMetric takes its ground truth from the annotation file, so the guard only reports here.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
