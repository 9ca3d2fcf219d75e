"""The configs that the demo trains with: the stock one made small, and the guarded one a user copies from."""

from __future__ import annotations

from pathlib import Path

from mmguard.compat.stack import base_source
from mmguard.files.whole import write_whole

STOCK = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
BATCH_SIZE = 4

SMALL = """\
# PIDNet-S on Cityscapes as MMSegmentation ships it, made small enough for two CPU cores: its model, its four losses and
# their class weights are untouched. Run from this folder:  python -m mmguard.tools.demo.train stock.py
_base_ = {stock}

data_root = 'cityscapes'
crop_size = (256, 512)  # whole images, so that every count can be compared with the label files

norm_cfg = dict(type='BN')
model = dict(
    data_preprocessor=dict(size=crop_size),
    backbone=dict(norm_cfg=norm_cfg, init_cfg=None),
    decode_head=dict(norm_cfg=norm_cfg),
)
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='GenerateEdge', edge_width=4),
    dict(type='PackSegInputs'),
]
train_dataloader = dict(
    batch_size={batch_size},
    num_workers=0,
    persistent_workers=False,
    dataset=dict(data_root=data_root, pipeline=train_pipeline),
)
train_cfg = dict(type='IterBasedTrainLoop', max_iters={iters}, val_interval={beyond})
val_dataloader = val_cfg = val_evaluator = None
test_dataloader = test_cfg = test_evaluator = None
log_processor = dict(window_size=1)  # every number of its own iteration
default_hooks = dict(logger=dict(interval=1), checkpoint=None)
env_cfg = dict(cudnn_benchmark=False)
"""

CLEAN = """\
# stock.py on those training images alone whose labels are all valid: classes 0..18 and the ordinary 255.
_base_ = 'stock.py'

train_dataloader = dict(dataset=dict(ann_file='clean.txt'))
"""

GUARDED = """\
# stock.py with mmguard. Run from this folder:  python -m mmguard.tools.demo.train guarded.py
_base_ = 'stock.py'

custom_imports = dict(imports=['mmguard'], allow_failed_imports=False)
custom_hooks = [dict(type='LabelGuardHook')]

# Type X becomes GuardedX; any other loss is wrapped in GuardedLoss.
class_weight = _base_.class_weight
ohem = dict(type='OhemCrossEntropy', thres=0.9, min_kept=131072, class_weight=class_weight, loss_weight=1.0)
model = dict(
    decode_head=dict(
        loss_decode=[
            dict(type='GuardedCrossEntropyLoss', class_weight=class_weight, loss_weight=0.4),
            dict(type='GuardedLoss', loss=ohem),
            dict(type='GuardedLoss', loss=dict(type='BoundaryLoss', loss_weight=20.0)),
            dict(type='GuardedLoss', loss=ohem),
        ]
    )
)

# The guard stands before GenerateEdge, so that no edges are drawn around invalid pixels. Its report reaches the hook
# through the Pack transform's meta_keys.
train_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='GuardSegLabels', num_classes=19),
    dict(type='GenerateEdge', edge_width=4),
    dict(type='PackSegInputs', meta_keys=('img_path', 'seg_map_path', 'ori_shape', 'img_shape', 'label_guard')),
]
train_dataloader = dict(dataset=dict(pipeline=train_pipeline))
"""


def write_configs(folder: Path, iters: int) -> None:
    """Writes ``stock.py``, ``stock_clean.py`` and ``guarded.py``."""
    small = SMALL.format(stock=base_source(STOCK), batch_size=BATCH_SIZE, iters=iters, beyond=iters + 1)
    write_whole(folder / 'stock.py', small.encode())
    write_whole(folder / 'stock_clean.py', CLEAN.encode())
    write_whole(folder / 'guarded.py', GUARDED.encode())
