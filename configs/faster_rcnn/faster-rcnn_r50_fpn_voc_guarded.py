# Faster R-CNN on Pascal VOC, guarded.
_base_ = ['mmdet::pascal_voc/faster-rcnn_r50_fpn_1x_voc0712.py']

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

num_classes = 20
model = dict(
    rpn_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss')),
    roi_head=dict(bbox_head=dict(loss_cls=dict(type='GuardedCrossEntropyLoss'))),
    # The guard turns invalid objects into ignore regions, which the stock value -1 trains as background. Above 0,
    # anchors and proposals with a larger share than this inside of an ignore region are left out.
    train_cfg=dict(
        rpn=dict(assigner=dict(ignore_iof_thr=0.5)),
        rcnn=dict(assigner=dict(ignore_iof_thr=0.5)),
    ),
)

guard = dict(type='GuardInstanceLabels', num_classes=num_classes)
# Last, so that the guard sees the labels that the heads get. keep_ignored=False removes difficult objects, which the
# stock assigners do not use, so that valid labels train as with the stock config.
train_pipeline = [*_base_.train_pipeline, dict(guard, keep_ignored=False)]
train_dataloader = dict(
    dataset=dict(
        dataset=dict(
            # A list replaces that of the base as a whole, so it repeats VOC2007 and VOC2012, with this pipeline.
            datasets=[
                dict(dataset, pipeline=train_pipeline) for dataset in _base_.train_dataloader.dataset.dataset.datasets
            ]
        )
    )
)

# VOCMetric reads the ground truth after the pipeline, including difficult objects and ignored instances.
test_pipeline = [*_base_.test_pipeline, guard]
val_dataloader = dict(dataset=dict(pipeline=test_pipeline))
test_dataloader = val_dataloader
