"""A depth map taken for labels: tens of thousands of values, and a log that stays small."""

from __future__ import annotations

import json
import os.path as osp
from typing import Any, Dict

import numpy as np
import pytest
from mmcv.transforms import BaseTransform
from mmseg.registry import TRANSFORMS
from small_runs import GUARD, LOAD, NUM_CLASSES, PACK, SIZE, tiny_config, train

pytestmark = pytest.mark.slow

SKIPPED = [0]


@TRANSFORMS.register_module(force=True)
class _NoiseOf16Bits(BaseTransform):
    """Replaces the label map; in the process that trains, so that what it made can be counted."""

    def __init__(self) -> None:
        self._numbers = np.random.default_rng(0)

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        noise = self._numbers.integers(0, 1 << 16, results['gt_seg_map'].shape, dtype=np.int64)
        SKIPPED[0] += int(((noise >= NUM_CLASSES) & (noise != 255)).sum())
        results['gt_seg_map'] = noise
        return results


def test_noise_of_16_bits_as_labels(cityscapes: str, work_dir: str) -> None:
    iterations = 40
    pipeline = [*LOAD, dict(type='_NoiseOf16Bits'), PACK, GUARD]
    config = tiny_config(cityscapes, work_dir, iters=iterations, pipeline=pipeline)
    config.train_dataloader.batch_size = 8
    config.train_dataloader.num_workers = 0
    config.custom_hooks[0].max_log_mb = 0.1
    SKIPPED[0] = 0
    run = train(config)
    path = osp.join(run.log_dir, 'label_guard.jsonl')
    assert osp.getsize(path) < 0.11 * 2**20
    with open(path, encoding='utf-8') as file:
        *lines, last = map(json.loads, file)
    assert 0 < len(lines) < iterations
    assert last.keys() == {'note'}
    assert sum(path in text for text in run.warnings) == 1
    pixels = run.modes['train']['totals']['pixels']
    assert pixels['total'] == iterations * 8 * SIZE**2
    assert pixels['skipped'] == SKIPPED[0]
    assert len(pixels['values']) == 32
    assert sum(pixels['values'].values()) + pixels['other_values'] == pixels['skipped']
