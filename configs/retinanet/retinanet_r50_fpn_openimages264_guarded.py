# RetinaNet on OpenImages with MLPerf's 264 of the 601 classes, guarded.
_base_ = ['mmdet::openimages/retinanet_r50_fpn_32xb2-1x_openimages.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

# The annotation files know 601 classes, the head 264. Stock, label 264 is trained as background in silence. So is every
# larger one on a GPU, whose kernel compares labels with classes; on a CPU one_hot raises.
num_classes = 264
model = dict(
    bbox_head=dict(num_classes=num_classes, loss_cls=dict(type='GuardedFocalLoss')),
    # The guard makes ignore regions of invalid instances. The stock -1 means that the assigner looks at no ignore
    # region at all: an unknown object would be trained as background. An anchor that lies by more than half in one
    # is left out.
    # So is an anchor on a valid object inside of it: where the untrained classes frame the trained ones (a Tree around
    # a Bird), on_invalid='drop' keeps the Bird, at the price of a Tree that is background. And an image without any
    # valid instance is background throughout, ignore regions or not: mmdet's assigner looks at them only beside an
    # object.
    train_cfg=dict(assigner=dict(ignore_iof_thr=0.5)),
)

guard = dict(type='GuardInstanceLabels', num_classes=num_classes)
# Last: it sees what the head will see. Without groups, which stock has no eye for, valid labels train as with stock.
train_pipeline = [*_base_.train_pipeline, dict(guard, keep_ignored=False)]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))

# OpenImagesMetric takes its ground truth from the annotation file, not from what a pipeline made of it: the guard only
# reports here.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
