# RetinaNet on OpenImages with MLPerf's 264 of the 601 classes, guarded.
_base_ = ['mmdet::openimages/retinanet_r50_fpn_32xb2-1x_openimages.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

# The annotation files have 601 classes, the head 264. The stock loss silently trains label 264 as background. On a GPU
# it does the same with larger labels, because its kernel only compares labels with classes; on a CPU one_hot raises.
num_classes = 264
model = dict(
    bbox_head=dict(num_classes=num_classes, loss_cls=dict(type='GuardedFocalLoss')),
    # The guard turns invalid instances into ignore regions. With the stock -1 the assigner does not use ignore regions,
    # and would train an unknown object as background. With 0.5, anchors are left out if more than half of their area
    # is inside of an ignore region, also anchors on a valid object in it: if untrained classes contain trained ones (a
    # Tree around a Bird), on_invalid='drop' keeps the Bird, but trains the Tree as background. An image without any
    # valid instance is trained as background entirely: mmdet's assigner uses ignore regions only if there is an object.
    train_cfg=dict(assigner=dict(ignore_iof_thr=0.5)),
)

guard = dict(type='GuardInstanceLabels', num_classes=num_classes)
# Last, so that the guard sees the labels that the head gets. keep_ignored=False removes groups, which the stock
# assigner does not use, so that valid labels train as with the stock config.
train_pipeline = [*_base_.train_pipeline, dict(guard, keep_ignored=False)]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# OpenImagesMetric takes its ground truth from the annotation file, not from the pipeline, so the guard only reports
# here.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
