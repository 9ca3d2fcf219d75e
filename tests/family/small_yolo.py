"""Shrunk configs of mmyolo, on the tiny COCO set of ``small_det_runs``: its labels 80 and 82 are beyond the head's."""

from __future__ import annotations

import json
import os.path as osp
import uuid
from typing import Any, Dict, List

import mmyolo_here  # noqa: F401
from mmengine.config import Config, ConfigDict
from small_det_data import write_text

from mmguard.compat.stack import find_config_file

SIZE = 96
PACK = 'PackDetInputs'


def with_polygons(root: str) -> str:
    """The same COCO set without RLE masks, which mmyolo does not read."""
    file = osp.join(root, 'annotations', 'instances_train2017.json')
    with open(file, encoding='utf-8') as opened:
        record = json.load(opened)
    for one in record['annotations']:
        x, y, width, height = one['bbox']
        one['segmentation'] = [[x, y, x + width, y, x + width, y + height, x, y + height]]
    write_text(file, json.dumps(record))
    return root


def yolo_config(name: str, root: str, work_dir: str, mixed: bool = False) -> Config:
    """A shipped config of a few weights, for one epoch of two iterations on the CPU.

    Args:
        name (str): Below mmyolo's ``configs``.
        root (str): Of the COCO set.
        work_dir (str): Of the run.
        mixed (bool): With the Mosaic of the config; else each image is trained on alone, whole.
    """
    config = Config.fromfile(find_config_file(f'mmyolo::{name}'))
    for node in _dicts(config.model):
        for key, value in (('widen_factor', 0.0625), ('deepen_factor', 0.33), ('init_cfg', None)):
            if key in node:
                node[key] = value
    if 'use_syncbn' in config.model:
        config.model.use_syncbn = False
    loader = config.train_dataloader
    loader.update(
        batch_size=4, num_workers=0, persistent_workers=False, sampler=dict(type='DefaultSampler', shuffle=False)
    )
    loader.pop('prefetch_factor', None)
    dataset: Any = loader.dataset
    while 'dataset' in dataset:
        dataset = dataset.dataset
    dataset.update(
        data_root=f'{root}/',
        ann_file='annotations/instances_train2017.json',
        data_prefix=dict(img='train2017/'),
        filter_cfg=dict(filter_empty_gt=False),
        metainfo=dict(classes=tuple(f'class {label}' for label in range(83))),
    )
    dataset.pipeline = [_small(step) for step in dataset.pipeline if (_is_there(step) if mixed else _keeps_whole(step))]
    if not mixed:
        dataset.pipeline[-1:-1] = [dict(type='YOLOv5KeepRatioResize', scale=(SIZE, SIZE))]
    config.merge_from_dict(
        dict(
            work_dir=work_dir,
            experiment_name=uuid.uuid4().hex,  # two runs within a second would share a log
            train_cfg=dict(_delete_=True, type='EpochBasedTrainLoop', max_epochs=1),
            optim_wrapper=dict(_delete_=True, type='OptimWrapper', optimizer=dict(type='SGD', lr=0.001)),
        )
    )
    for key in ('val', 'test'):
        for part in ('dataloader', 'evaluator', 'cfg'):
            config[f'{key}_{part}'] = None
    config.custom_hooks, config.param_scheduler, config.load_from = [], None, None
    config.default_hooks = dict(
        logger=dict(type='LoggerHook', interval=1), checkpoint=dict(type='CheckpointHook', interval=99)
    )
    config.env_cfg, config.randomness = dict(cudnn_benchmark=False), dict(seed=0)
    config.visualizer = dict(type='mmdet.DetLocalVisualizer', vis_backends=[])
    return config


def _dicts(node: Any) -> List[Dict[str, Any]]:
    if isinstance(node, dict):
        return [node, *(found for value in node.values() for found in _dicts(value))]
    return [found for value in node for found in _dicts(value)] if isinstance(node, (list, tuple)) else []


def _is_there(step: ConfigDict) -> bool:
    return not step.type.endswith('Albu')  # it needs albumentations


def _keeps_whole(step: ConfigDict) -> bool:
    kind = step.type.rpartition('.')[2]
    return kind.startswith('Load') or kind in (PACK, 'Polygon2Mask')


def _small(step: ConfigDict) -> ConfigDict:
    for node in _dicts(step):
        for key in ('img_scale', 'scale'):
            if key in node:
                node[key] = (SIZE, SIZE)
        if 'border' in node:
            node['border'] = (-SIZE // 2, -SIZE // 2)
    return step
