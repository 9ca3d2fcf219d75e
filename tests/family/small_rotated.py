"""A rotated RetinaNet and a RTMDet-R of mmrotate, shrunk, on a few images and text files as DOTA has them."""

from __future__ import annotations

import math
import os.path as osp
import uuid
from typing import Dict, List

import mmrotate_here  # noqa: F401
import numpy as np
from mmengine.config import Config
from small_det_data import write_image, write_text

from mmguard.compat.stack import find_config_file

NAME = 'mmrotate::rotated_retinanet/rotated-retinanet-rbox-le90_r50_fpn_1x_dota.py'
RTMDET = 'mmrotate::rotated_rtmdet/rotated_rtmdet_tiny-3x-dota.py'
HEAD_CLASSES = 3
CLASSES = ('ship', 'plane', 'harbor', 'bridge', 'crane')
#: File -> names of its objects. A bridge is label 3, the background of the head; a crane is beyond it.
OBJECTS: Dict[str, List[str]] = {
    'P0001': ['ship', 'plane', 'bridge'],
    'P0002': ['harbor', 'crane', 'crane'],
    'P0003': ['bridge'],
    'P0004': ['ship', 'harbor'],
}


def make_dota(root: str, without: str = '') -> str:
    """Writes images of 96 x 96 pixels and their label files; objects of one name may be left out."""
    for seed, (stem, names) in enumerate(OBJECTS.items()):
        write_image(osp.join(root, 'images', f'{stem}.png'), seed)
        lines = [_line(number, name) for number, name in enumerate(names) if name != without]
        write_text(osp.join(root, 'labels', f'{stem}.txt'), '\n'.join(lines))
    return root


def _line(number: int, name: str) -> str:
    """x1 y1 ... y4 name difficulty, of a turned box."""
    angle, centre = 0.4 + number, np.array([24 + 24 * number, 48])
    along = np.array([math.cos(angle), math.sin(angle)]) * 14
    across = np.array([-math.sin(angle), math.cos(angle)]) * 8
    corners = [centre + along + across, centre + along - across, centre - along - across, centre - along + across]
    return ' '.join([*(f'{value:.1f}' for corner in corners for value in corner), name, '0'])


def rotated_config(root: str, work_dir: str) -> Config:
    """For one epoch of two iterations on the CPU, each file once."""
    config = Config.fromfile(find_config_file(NAME))
    config.model.backbone.update(depth=18, init_cfg=None)
    config.model.neck.update(in_channels=[64, 128, 256, 512], out_channels=16)
    config.model.bbox_head.update(num_classes=HEAD_CLASSES, in_channels=16, feat_channels=16, stacked_convs=1)
    return _on_files(config, root, work_dir)


def rtmdet_config(root: str, work_dir: str) -> Config:
    """The same for RTMDet-R, whose loss of boxes, RotatedIoULoss, is compiled for a GPU alone."""
    config = Config.fromfile(find_config_file(RTMDET))
    config.custom_hooks = []  # NumClassCheckHook compares the head with the class list, and not with the labels
    model, norm = config.model, dict(type='BN')
    model.backbone.update(widen_factor=0.125, init_cfg=None, norm_cfg=norm)
    model.neck.update(in_channels=[32, 64, 128], out_channels=16, norm_cfg=norm)
    model.bbox_head.update(num_classes=HEAD_CLASSES, in_channels=16, feat_channels=16, stacked_convs=1, norm_cfg=norm)
    model.bbox_head.loss_bbox = dict(type='GDLoss', loss_type='gwd', fun='log1p', tau=2, loss_weight=2.0)
    return _on_files(config, root, work_dir)


def _on_files(config: Config, root: str, work_dir: str) -> Config:
    dataset = config.train_dataloader.dataset
    dataset.update(
        data_root=root,
        ann_file='labels/',
        data_prefix=dict(img_path='images/'),
        metainfo=dict(classes=CLASSES),
        filter_cfg=dict(filter_empty_gt=False),
    )
    for step in dataset.pipeline:
        if 'scale' in step:
            step.scale = (96, 96)
    config.train_dataloader.update(
        batch_size=2, num_workers=0, persistent_workers=False, sampler=dict(type='DefaultSampler', shuffle=False)
    )
    return for_one_epoch(config, work_dir)


def for_one_epoch(config: Config, work_dir: str) -> Config:
    """One epoch, and nothing but a training."""
    config.merge_from_dict(
        dict(
            work_dir=work_dir,
            train_cfg=dict(_delete_=True, type='EpochBasedTrainLoop', max_epochs=1),
            optim_wrapper=dict(_delete_=True, type='OptimWrapper', optimizer=dict(type='SGD', lr=0.001)),
        )
    )
    for key in ('val', 'test'):
        for part in ('dataloader', 'evaluator', 'cfg'):
            config[f'{key}_{part}'] = None
    config.param_scheduler, config.load_from = [], None
    config.default_hooks = dict(
        logger=dict(type='LoggerHook', interval=1), checkpoint=dict(type='CheckpointHook', interval=99)
    )
    config.env_cfg = dict(cudnn_benchmark=False)
    config.visualizer = dict(type='Visualizer', vis_backends=[])
    config.experiment_name = uuid.uuid4().hex  # two runs of one name would share a log
    return config
