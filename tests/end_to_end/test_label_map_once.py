"""``label_map`` in two guards of one pipeline."""

from __future__ import annotations

import uuid
from typing import Any, Dict, List

import numpy as np
import pytest
from mmengine.config import Config
from small_runs import LOAD, META_KEYS, PACK, runner_of, tiny_config, train

from mmguard import LabelGuardError
from mmguard.transforms import GuardClsLabels, GuardInstanceLabels, GuardSegLabels

#: Twice is not once.
MAPS = ({1: 2, 2: 1}, {0: 1, 1: 2}, {7: 0, 0: 1, '*': 255})


@pytest.mark.parametrize('label_map', MAPS, ids=str)
def test_the_second_guard_sees_that_a_sample_is_mapped(label_map: Dict[Any, int]) -> None:
    def sample() -> Dict[str, Any]:
        return dict(gt_seg_map=np.array([[0, 1, 2, 7, 255]], np.uint8), img_path='a.png')

    guard = GuardSegLabels(3, label_map=label_map)
    once = guard(sample())
    twice = GuardSegLabels(3, label_map=dict(label_map))(guard(sample()))
    assert twice['gt_seg_map'].tolist() == once['gt_seg_map'].tolist()
    assert twice['label_guard'] == once['label_guard']


def test_another_map_is_another_step() -> None:
    results = GuardSegLabels(3, label_map={1: 2})(dict(gt_seg_map=np.array([[0, 1]], np.uint8)))
    assert GuardSegLabels(3, label_map={2: 0})(results)['gt_seg_map'].tolist() == [[0, 0]]


def test_instances_and_images_are_mapped_once() -> None:
    results: Dict[str, Any] = dict(gt_bboxes_labels=np.array([0, 1, 2]), img_path='a.jpg')
    for _ in range(2):
        results = GuardInstanceLabels(3, label_map={0: 1, 1: 0})(results)
    assert results['gt_bboxes_labels'].tolist() == [1, 0, 2]
    image: Dict[str, Any] = dict(gt_label=0, img_path='a.jpg')
    for _ in range(2):
        image = GuardClsLabels(3, label_map={0: 1, 1: 2})(image)
    assert image['gt_label'].tolist() == [1]


# ---- through the real Runner


def config_of(root: str, work_dir: str, pack: Dict[str, Any], guards: int, **guard: Any) -> Config:
    step = dict(type='GuardSegLabels', num_classes=19, **guard)
    pipeline: List[Any] = [*LOAD, *([step] * (guards > 1)), pack, step]
    config = tiny_config(root, f'{work_dir}/{uuid.uuid4().hex}', pipeline=pipeline)  # runs of one second share no log
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    return config


def losses(config: Config) -> List[float]:
    return [line['loss'] for line in train(config).scalars if 'loss' in line]


@pytest.mark.slow
def test_two_guards_train_as_one_does(clean_cityscapes: str, work_dir: str) -> None:
    label_map = {4: 5, 5: 4, 6: 7, 7: 8}
    pack = {**PACK, 'meta_keys': (*META_KEYS, 'label_guard')}
    once = losses(config_of(clean_cityscapes, work_dir, pack, 1, label_map=label_map))
    twice = losses(config_of(clean_cityscapes, work_dir, pack, 2, label_map=label_map))
    without = losses(config_of(clean_cityscapes, work_dir, pack, 1))
    assert twice == once != without


@pytest.mark.slow
def test_a_run_whose_second_guard_cannot_see_it_does_not_begin(clean_cityscapes: str, work_dir: str) -> None:
    runner = runner_of(config_of(clean_cityscapes, work_dir, PACK, 2, label_map={4: 5, 5: 4}))
    with pytest.raises(LabelGuardError, match="'label_guard'"):
        runner.train()
    # A map that changes nothing the second time may stand in both.
    assert losses(config_of(clean_cityscapes, work_dir, PACK, 2, label_map={4: 5}))
