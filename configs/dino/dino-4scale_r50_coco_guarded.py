# DINO on COCO, guarded.
_base_ = ['mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 80
model = dict(bbox_head=dict(loss_cls=dict(type='GuardedFocalLoss')))

# 'drop', because a DETR-like head has no ignore regions: it matches queries to objects, and a query without an object
# is "no object". The head does not use ignored instances (crowds either), so 'ignore' would train the same and only
# look different. Denoising embeds the labels before any loss is called, so only the guard in the pipeline protects it.
guard = dict(type='GuardInstanceLabels', num_classes=num_classes, on_invalid='drop')
train_pipeline = [*_base_.train_pipeline, guard]  # last, so that the guard sees the labels that the head gets
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# CocoMetric takes its ground truth from the annotation file, so the guard only reports here.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
