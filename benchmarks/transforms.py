"""GuardSegLabels, compared with mmseg's Cityscapes training pipeline at 2048x1024."""

from __future__ import annotations

import copy
import os
import tempfile
from typing import Any, Dict, List

import cv2
import numpy as np
from mmengine.dataset import Compose
from mmengine.registry import init_default_scope

import mmguard
from benchmarks.timing import Row, interleaved

HEIGHT, WIDTH, CLASSES, IGNORED = 1024, 2048, 19, 255
PIPELINE = [
    dict(type='LoadImageFromFile'),
    dict(type='LoadAnnotations'),
    dict(type='RandomResize', scale=(WIDTH, HEIGHT), ratio_range=(0.5, 2.0), keep_ratio=True),
    dict(type='RandomCrop', crop_size=(512, 1024), cat_max_ratio=0.75),
    dict(type='RandomFlip', prob=0.5),
    dict(type='PhotoMetricDistortion'),
    dict(type='PackSegInputs'),
]


def rows(device: str, rounds: int) -> List[Row]:
    import mmseg.datasets.transforms  # noqa: F401

    init_default_scope('mmseg')
    threads = cv2.getNumThreads()
    cv2.setNumThreads(0)  # as in a dataloader worker
    try:
        with tempfile.TemporaryDirectory() as folder:
            return [row for share in (0.0, 0.01) for row in _rows(folder, share, rounds)]
    finally:
        cv2.setNumThreads(threads)


def _rows(folder: str, invalid_share: float, rounds: int) -> List[Row]:
    sample = _write_sample(folder, invalid_share)
    whole = Compose(PIPELINE)
    guard = mmguard.GuardSegLabels(num_classes=CLASSES, ignore_index=IGNORED)
    loaded = Compose(PIPELINE[:2])(copy.deepcopy(sample))
    crop = Compose([dict(type='RandomCrop', crop_size=(512, 1024))])
    packed = Compose([dict(type='PackSegInputs')])(crop(dict(loaded)))

    def before() -> None:
        guard(dict(loaded))

    def after() -> None:
        data_sample = packed['data_samples']
        labels = data_sample.gt_sem_seg.data
        guard(packed)
        data_sample.gt_sem_seg.data = labels  # restored for the next round
        del data_sample.label_guard

    calls = {'pipeline': lambda: whole(copy.deepcopy(sample)), 'before Pack': before, 'after Pack': after}
    ms = interleaved(calls, rounds)
    state = f'{invalid_share:.0%} invalid' if invalid_share else 'clean'
    return [Row(f'transform {place}, {state} / pipeline', ms[place], ms['pipeline'], 0.03) for place in list(calls)[1:]]


def _write_sample(folder: str, invalid_share: float) -> Dict[str, Any]:
    random = np.random.default_rng(0)
    coarse = random.integers(0, 256, (HEIGHT // 32, WIDTH // 32, 3), dtype=np.uint8)
    image = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    image = cv2.add(image, random.integers(0, 12, image.shape, dtype=np.uint8))
    regions = random.integers(0, CLASSES, (HEIGHT // 64, WIDTH // 64), dtype=np.uint8)
    regions[random.random(regions.shape) < 0.1] = IGNORED
    label = cv2.resize(regions, (WIDTH, HEIGHT), interpolation=cv2.INTER_NEAREST)
    label[random.random(label.shape) < invalid_share] = 33
    paths = {key: os.path.join(folder, f'{key}-{invalid_share}.png') for key in ('img_path', 'seg_map_path')}
    cv2.imwrite(paths['img_path'], image)
    cv2.imwrite(paths['seg_map_path'], label)
    return {**paths, 'label_map': None, 'reduce_zero_label': False, 'seg_fields': []}
