"""The demo's folder and its config."""

from __future__ import annotations

import shutil
from pathlib import Path

from mmguard.compat.stack import base_source
from mmguard.errors import CannotRun
from mmguard.files.regular import write_whole

STOCK = 'mmseg::pidnet/pidnet-s_2xb6-120k_1024x1024-cityscapes.py'
BATCH_SIZE = 4
#: Marks a folder created by the demo, which may empty it.
MARK = '.mmguard_demo'

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


def write_stock(folder: Path, iters: int) -> None:
    """Write ``stock.py``."""
    small = SMALL.format(stock=base_source(STOCK), batch_size=BATCH_SIZE, iters=iters, beyond=iters + 1)
    write_whole(folder / 'stock.py', small.encode())


def empty_folder(folder: Path) -> Path:
    """Empty the demo's folder, or create it; refuse a file, and a folder with files not made by the demo."""
    if folder.exists() and not folder.is_dir():
        raise CannotRun(f'{folder} is a file; give another folder with --out')
    if folder.is_dir() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise CannotRun(f'{folder} holds files that the demo did not make; give another folder with --out')
    folder.mkdir(parents=True, exist_ok=True)
    # The mark is written first and never removed, so the next run may empty the folder of an interrupted one.
    write_whole(folder / MARK, b'made by mmguard demo, which empties this folder each time\n')
    for path in folder.iterdir():
        if path.name == MARK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    return folder
