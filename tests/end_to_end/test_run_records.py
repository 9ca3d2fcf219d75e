"""``label_guard.json`` of real trainings: what was valid, and sums that an independent count gives, too."""

from __future__ import annotations

import json
import os.path as osp
import uuid
from collections import Counter
from typing import Any, Dict, List

import numpy as np
import pytest
from mmcv.transforms import BaseTransform
from mmengine.config import Config, ConfigDict
from mmseg.models import EncoderDecoder
from mmseg.registry import MODELS, TRANSFORMS
from small_runs import (
    GUARD,
    LOAD,
    META_KEYS,
    NUM_CLASSES,
    PACK,
    SIZE,
    TRAIN_IMAGES,
    VAL_IMAGES,
    Run,
    add_loop,
    expected_samples,
    runner_of,
    tiny_config,
    train,
)

from mmguard import LabelGuardError
from mmguard.transforms import GuardClsLabels, GuardInstanceLabels, GuardSegLabels

pytest.importorskip('mmdet')


@pytest.mark.slow
def test_totals_are_those_of_all_iterations(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, iters=8)  # every image twice
    add_loop(config, 'val')
    config.train_cfg.val_interval = 4
    modes = train(config).modes
    for mode, images, loops in (('train', TRAIN_IMAGES, 2), ('val', VAL_IMAGES, 2)):
        expected = expected_samples(cityscapes, f'gtFine/{mode}')
        skipped = [sample['skipped'] for sample in expected]
        values: Counter = sum((Counter(sample['values']) for sample in expected), Counter())
        totals = modes[mode]['totals']
        assert totals['pixels'] == dict(
            total=loops * images * SIZE**2,
            skipped=loops * sum(skipped),
            remapped=0,
            values={value: loops * count for value, count in values.items()},
        )
        assert (totals['files'], totals['offending_files']) == (images, sum(map(bool, skipped)))
        assert modes[mode]['ended'] is True
        (guard,) = modes[mode]['guards']
        assert (guard['kind'], guard['num_classes'], guard['ignore_index']) == ('pixels', NUM_CLASSES, 255)
        assert modes[mode]['data_roots'] == [cityscapes]
        assert len(modes[mode]['classes']) == NUM_CLASSES
    assert (modes['train']['iter'], modes['train']['totals']['iterations']) == (8, 8)
    (spaces,) = modes['train']['losses'].values()
    assert spaces == [dict(kind='pixels', num_classes=NUM_CLASSES, ignore_index=255)]
    assert modes['val']['losses'] == {}


@pytest.mark.slow
def test_a_clean_run_leaves_its_totals_and_no_line(clean_cityscapes: str, work_dir: str) -> None:
    run = train(tiny_config(clean_cityscapes, work_dir, iters=2))
    totals = run.modes['train']['totals']
    assert totals['pixels'] == dict(total=4 * SIZE**2, skipped=0, remapped=0, values={})
    assert (totals['iterations'], totals['offending_iterations']) == (2, 0)
    assert not osp.exists(osp.join(run.log_dir, 'label_guard.jsonl'))


@pytest.mark.slow
def test_what_only_the_loss_saw_is_there(cityscapes: str, work_dir: str) -> None:
    modes = train(tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])).modes
    (count,) = modes['train']['totals']['losses'].values()
    skipped = sum(sample['skipped'] for sample in expected_samples(cityscapes, 'gtFine/train'))
    assert count == dict(seen=TRAIN_IMAGES * SIZE**2, skipped=skipped, remapped=0)
    assert modes['train']['guards'] == []


@pytest.mark.slow
def test_a_training_that_dies_has_not_ended(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks.append(dict(type='StopAt'))
    run = Run(config)
    with pytest.raises(FloatingPointError):
        run.train()
    assert run.modes['train']['ended'] is False


UNGUARDED = dict(type='CrossEntropyLoss')


@MODELS.register_module(force=True)
class _OneBranch(EncoderDecoder):
    """Trains on the branch ``sup`` of a batch."""

    def forward(self, inputs: Any, data_samples: Any = None, mode: str = 'tensor') -> Any:
        return super().forward(inputs['sup'], data_samples['sup'], mode)


@pytest.mark.slow
def test_a_guard_in_a_branch_is_found(cityscapes: str, work_dir: str) -> None:
    branches = dict(type='mmdet.MultiBranch', branch_field=['sup'], sup=[PACK, GUARD])
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, branches])
    config.model.type = '_OneBranch'
    config.model.decode_head.loss_decode = UNGUARDED
    config.model.data_preprocessor = dict(
        type='mmdet.MultiBranchDataPreprocessor', data_preprocessor=config.model.data_preprocessor
    )
    run = train(config)
    assert [guard['num_classes'] for guard in run.modes['train']['guards']] == [NUM_CLASSES]
    found = [sample for line in run.lines() for sample in line['samples']]
    assert found == [sample for sample in expected_samples(cityscapes, 'gtFine/train') if sample['skipped']]


@pytest.mark.slow
def test_a_guard_in_test_time_augmentation_is_found_once(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    flips = [dict(type='RandomFlip', prob=0.0), dict(type='RandomFlip', prob=1.0)]
    add_loop(config, 'test', [LOAD[0], dict(type='TestTimeAug', transforms=[flips, [LOAD[1]], [PACK], [GUARD]])])
    config.model = ConfigDict(type='SegTTAModel', module=config.model)
    run = Run(config).test()
    assert [guard['num_classes'] for guard in run.modes['test']['guards']] == [NUM_CLASSES]
    # Each view of an image has its labels; they count once.
    found = [sample for line in run.lines('test') for sample in line['samples']]
    assert found == [sample for sample in expected_samples(cityscapes, 'gtFine/val') if sample['skipped']]
    totals = run.modes['test']['totals']
    assert (totals['pixels']['total'], totals['files']) == (VAL_IMAGES * SIZE**2, VAL_IMAGES)


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


@pytest.mark.slow
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
