"""Guarded and stock detection: GuardInstanceLabels in COCO's training pipeline, and training steps of RetinaNet."""

from __future__ import annotations

import copy
import os
import statistics
import tempfile
import time
from typing import Any, Callable, Dict, List

import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.registry import init_default_scope
from torch import nn

import mmguard
from benchmarks.timing import Row, interleaved

#: COCO's usual image, and a little more than its mean number of instances.
HEIGHT, WIDTH, CLASSES, INSTANCES = 480, 640, 80, 8
CONFIG = "_base_ = ['mmdet::retinanet/retinanet_r18_fpn_1x_coco.py']"
#: The shorter side of the images of a training step, pixels.
STEP_SIZE = 160


def rows(device: str, rounds: int) -> List[Row]:
    from mmdet.utils import register_all_modules

    register_all_modules(init_default_scope=False)
    init_default_scope('mmdet')
    config = Config.fromstring(CONFIG, '.py')
    threads = cv2.getNumThreads()
    cv2.setNumThreads(0)  # as in a dataloader worker
    try:
        with tempfile.TemporaryDirectory() as folder:
            sample = _write_sample(folder)
            return [*_transform_rows(config, sample, rounds), *_step_rows(config, sample, device, rounds)]
    finally:
        cv2.setNumThreads(threads)


def _transform_rows(config: Config, sample: Dict[str, Any], rounds: int) -> List[Row]:
    """Time the guard inside the pipeline, on new samples and with the caches as the pipeline leaves them."""
    guard = mmguard.GuardInstanceLabels(num_classes=CLASSES)
    table = []
    # The bar is for a clean image; an image with an invalid label is measured for comparison.
    for state, label, bar in (('clean', 3, 0.01), ('1 of 8 invalid', CLASSES, None)):
        sample['instances'][0]['bbox_label'] = label
        for place, cut in (('before Pack', -1), ('after Pack', len(config.train_pipeline))):
            first, last = Compose(config.train_pipeline[:cut]), Compose(config.train_pipeline[cut:])
            ours, pipeline = [], []
            for _ in range(10 * rounds):
                fresh = copy.deepcopy(sample)
                start = time.perf_counter()
                packed = first(fresh)
                before = time.perf_counter()
                packed = guard(packed)
                after = time.perf_counter()
                packed = last(packed)
                ours.append(1e3 * (after - before))
                pipeline.append(1e3 * (time.perf_counter() - start) - ours[-1])
            what = f'instances {place}, {state} / COCO pipeline'
            table.append(Row(what, statistics.median(ours), statistics.median(pipeline), bar))
    return table


def _step_rows(config: Config, sample: Dict[str, Any], device: str, rounds: int) -> List[Row]:
    from mmdet.registry import MODELS

    config.model.backbone.init_cfg = None
    stock_loss = config.model.bbox_head.loss_cls
    torch.manual_seed(0)
    model = MODELS.build(config.model).to(device).train()
    losses: Dict[str, nn.Module] = {
        'stock': model.bbox_head.loss_cls,
        'guarded': MODELS.build(dict(stock_loss, type='GuardedLoss', loss=stock_loss.type)),
    }
    pipeline = copy.deepcopy(config.train_pipeline)
    pipeline[2].update(scale=(STEP_SIZE, STEP_SIZE))
    packed = [Compose(pipeline)(copy.deepcopy(sample)) for _ in range(2)]
    data = model.data_preprocessor(pseudo_collate(packed), True)

    def step(name: str) -> Callable[[], None]:
        def run() -> None:
            # One model for both sides, so that they use the same weights in the same memory.
            model.bbox_head.loss_cls = losses[name]
            total, _ = model.parse_losses(model(**data, mode='loss'))
            total.backward()
            model.zero_grad()

        return run

    ms = interleaved({name: step(name) for name in losses}, 4 * rounds, device)
    return [Row('RetinaNet-R18 training step, guarded / stock', ms['guarded'], ms['stock'], 1.01)]


def _write_sample(folder: str) -> Dict[str, Any]:
    random = np.random.default_rng(0)
    coarse = random.integers(0, 256, (HEIGHT // 16, WIDTH // 16, 3), dtype=np.uint8)
    path = os.path.join(folder, 'image.jpg')
    image = cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    # With noise, so that the file has about 160 KB, like a photograph: a smooth image would be decoded too fast.
    cv2.imwrite(path, cv2.add(image, random.integers(0, 24, image.shape, dtype=np.uint8)))
    corners = random.uniform(0, 300, (INSTANCES, 4))
    corners[:, 2:] = corners[:, :2] + random.uniform(20, 150, (INSTANCES, 2))
    instances = [
        dict(bbox=box.tolist(), bbox_label=int(random.integers(CLASSES)), ignore_flag=0, mask=[]) for box in corners
    ]
    return dict(img_path=path, img_id=0, height=HEIGHT, width=WIDTH, instances=instances)
