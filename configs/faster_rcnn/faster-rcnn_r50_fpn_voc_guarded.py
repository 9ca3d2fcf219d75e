# Faster R-CNN on Pascal VOC, guarded.
_base_ = ['mmdet::pascal_voc/faster-rcnn_r50_fpn_1x_voc0712.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 20
model = dict(
    rpn_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
    roi_head=dict(bbox_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss'))),
    # Stock, -1: ignore regions, which the guard makes of invalid objects, are trained as background. Above 0, anchors
    # and proposals that lie by more than that share in one are left out.
    train_cfg=dict(
        rpn=dict(assigner=dict(ignore_iof_thr=0.5)),
        rcnn=dict(assigner=dict(ignore_iof_thr=0.5)),
    ),
)

guard = dict(type='GuardInstanceLabels', num_classes=num_classes)
# Last: it sees what the heads will see. Without difficult objects, which stock has no eye for, valid labels train as
# with stock.
train_pipeline = [*_base_.train_pipeline, dict(guard, keep_ignored=False)]
train_dataloader = dict(
    dataset=dict(
        dataset=dict(
            # A list is replaced as a whole: VOC2007 and VOC2012 of the base, with this pipeline.
            datasets=[
                dict(dataset, pipeline=train_pipeline) for dataset in _base_.train_dataloader.dataset.dataset.datasets
            ]
        )
    )
)

# VOCMetric reads the ground truth that the pipeline leaves, difficult objects and ignored instances included.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
