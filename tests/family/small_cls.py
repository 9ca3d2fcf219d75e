"""Twelve tiny pictures in three classes, labels planted beyond these, and small classifiers of mmpretrain."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import numpy as np
from mmengine.config import Config
from PIL import Image

CLASSES = ('cat', 'dog', 'bird')
IMAGES = 12
BATCH = 4
#: Number of the image -> a label that no head of three classes knows.
PLANTED = {1: 3, 6: -1, 7: 255}


def name_of(number: int) -> str:
    return f'{number:02}.png'


def make_images(root: Path) -> None:
    rng = np.random.default_rng(0)
    (root / 'images').mkdir(parents=True, exist_ok=True)
    for number in range(IMAGES):
        Image.fromarray(rng.integers(0, 256, (32, 32), dtype=np.uint8)).save(root / 'images' / name_of(number))


def make_single(root: Path, planted: Optional[Dict[int, int]] = None) -> Path:
    """``file label`` per line, as CustomDataset and ImageNet read it."""
    make_images(root)
    planted = PLANTED if planted is None else planted
    lines = [f'{name_of(number)} {planted.get(number, number % 3)}\n' for number in range(IMAGES)]
    (root / 'train.txt').write_text(''.join(lines), encoding='utf-8')
    return root


def make_multi(root: Path) -> Path:
    """Each image has its class, the next one, and what is planted, as MultiLabelDataset reads it."""
    make_images(root)
    samples = [
        {
            'img_path': name_of(number),
            'gt_label': sorted({number % 3, (number + 1) % 3}) + ([PLANTED[number]] if number in PLANTED else []),
        }
        for number in range(IMAGES)
    ]
    said = {'metainfo': {'classes': list(CLASSES)}, 'data_list': samples}
    (root / 'train.json').write_text(json.dumps(said), encoding='utf-8')
    return root


def cls_config(
    root: Path,
    work_dir: Path,
    head: Optional[Dict[str, Any]] = None,
    augments: Sequence[Dict[str, Any]] = (),
    dataset: Optional[Dict[str, Any]] = None,
    validate: bool = False,
) -> Config:
    """LeNet for an epoch of three iterations on the CPU, in the order of the files."""
    pipeline: List[Dict[str, Any]] = [dict(type='LoadImageFromFile', color_type='grayscale'), dict(type='PackInputs')]
    data = dict(type='CustomDataset', ann_file='train.txt', metainfo=dict(classes=CLASSES))
    data = {**(dataset or data), 'data_root': str(root), 'data_prefix': 'images', 'pipeline': pipeline}
    loader = dict(
        batch_size=BATCH,
        num_workers=0,
        sampler=dict(type='DefaultSampler', shuffle=False),
        collate_fn=dict(type='default_collate'),
        dataset=data,
    )
    head = dict(type='LinearClsHead', loss=dict(type='CrossEntropyLoss')) if head is None else head
    config = dict(
        default_scope='mmpretrain',
        model=dict(
            type='ImageClassifier',
            backbone=dict(type='LeNet5'),
            neck=dict(type='GlobalAveragePooling'),
            head=dict(num_classes=len(CLASSES), in_channels=120, **head),
            train_cfg=dict(augments=list(augments)) if augments else None,
        ),
        data_preprocessor=dict(mean=[127.0], std=[64.0], num_classes=len(CLASSES)),
        train_dataloader=loader,
        train_cfg=dict(type='EpochBasedTrainLoop', max_epochs=1, val_interval=1),
        optim_wrapper=dict(optimizer=dict(type='SGD', lr=0.01)),
        default_hooks=dict(
            logger=dict(type='LoggerHook', interval=1), checkpoint=dict(type='CheckpointHook', interval=99)
        ),
        randomness=dict(seed=0),
        visualizer=dict(type='UniversalVisualizer', vis_backends=[dict(type='LocalVisBackend')]),
        experiment_name=uuid.uuid4().hex,  # two runs within a second would share a log
        work_dir=str(work_dir),
    )
    if validate:
        config.update(val_dataloader=loader, val_cfg=dict(), val_evaluator=dict(type='Accuracy', topk=(1,)))
    return Config(config)
