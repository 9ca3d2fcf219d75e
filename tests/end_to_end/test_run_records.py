"""``label_guard.json`` of real trainings: what was valid, and sums that an independent count gives, too."""

from __future__ import annotations

import copy
import os.path as osp
import uuid
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import numpy as np
import pytest
from mmengine.config import Config
from mmengine.registry import LOOPS
from mmengine.runner import ValLoop
from small_runs import (
    LOAD,
    NUM_CLASSES,
    PACK,
    SIZE,
    TRAIN_IMAGES,
    VAL_IMAGES,
    Run,
    add_loop,
    expected_samples,
    make_cityscapes,
    runner_of,
    tiny_config,
    train,
)

from mmguard import LabelGuardError
from mmguard.hooks.discovery import find_naming_roots
from mmguard.log.guard_log import read_log
from mmguard.transforms import GuardInstanceLabels, GuardSegLabels

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
def test_a_training_that_dies_has_not_ended(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks.append(dict(type='StopAt'))
    run = Run(config)
    with pytest.raises(FloatingPointError):
        run.train()
    assert run.modes['train']['ended'] is False


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


def test_instances_are_mapped_once() -> None:
    results: Dict[str, Any] = dict(gt_bboxes_labels=np.array([0, 1, 2]), img_path='a.jpg')
    for _ in range(2):
        results = GuardInstanceLabels(3, label_map={0: 1, 1: 0})(results)
    assert results['gt_bboxes_labels'].tolist() == [1, 0, 2]


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
def test_a_run_whose_second_guard_cannot_see_it_does_not_begin(clean_cityscapes: str, work_dir: str) -> None:
    runner = runner_of(config_of(clean_cityscapes, work_dir, PACK, 2, label_map={4: 5, 5: 4}))
    with pytest.raises(LabelGuardError, match="'label_guard'"):
        runner.train()
    # A map that changes nothing the second time may stand in both.
    assert losses(config_of(clean_cityscapes, work_dir, PACK, 2, label_map={4: 5}))


@pytest.fixture
def roots(tmp_path: Path) -> List[str]:
    """Two data sets with the same file names; only the second has invalid labels."""
    clean = make_cityscapes(str(tmp_path / 'first'), planted={})
    return [clean, make_cityscapes(str(tmp_path / 'second'))]


def both(dataset: Dict[str, Any], roots: List[str], times: int = 1) -> Dict[str, Any]:
    inner = [{**copy.deepcopy(dataset), 'data_root': root} for root in roots]
    if times > 1:
        inner = [dict(type='RepeatDataset', dataset=one, times=times) for one in inner]
    return dict(type='ConcatDataset', datasets=inner)


def named(run: Run, mode: str = 'train') -> Dict[str, int]:
    """File -> invalid pixels in it, as the lines of the log say."""
    return {sample['source']: sample['skipped'] for line in run.lines(mode) for sample in line['samples']}


def planted(root: str, folder: str) -> Dict[str, int]:
    return {osp.join(root, one['source']): one['skipped'] for one in expected_samples(root, folder) if one['skipped']}


def files_seen(run: Run, mode: str = 'train') -> int:
    return read_log(run.log_dir).totals(mode).files


@pytest.mark.slow
@pytest.mark.parametrize(('times', 'workers'), [(1, 0), (2, 0), (1, 2)])
def test_two_roots_of_label_maps(times: int, workers: int, roots: List[str], work_dir: str) -> None:
    config = tiny_config(roots[0], work_dir, iters=8 * times)
    loader = config.train_dataloader
    loader.num_workers, loader.dataset = workers, both(loader.dataset, roots, times)
    run = train(config)
    assert named(run) == planted(roots[1], 'gtFine/train')
    assert files_seen(run) == 2 * TRAIN_IMAGES


@pytest.mark.slow
def test_one_root_in_several_data_sets_is_left_out_of_the_names(roots: List[str], work_dir: str) -> None:
    config = tiny_config(roots[1], work_dir, iters=8)
    config.train_dataloader.dataset = both(config.train_dataloader.dataset, [roots[1], roots[1] + '/'])
    found = {osp.relpath(path, roots[1]): pixels for path, pixels in planted(roots[1], 'gtFine/train').items()}
    assert named(train(config)) == found


@LOOPS.register_module()
class TwoLoaders(ValLoop):
    """Validates over several data loaders; mmengine's hooks know the first."""

    def __init__(self, runner: Any, dataloader: List[Dict[str, Any]], evaluator: Any) -> None:
        loops = [ValLoop(runner, one, copy.deepcopy(evaluator)) for one in dataloader]
        self._runner, self.loops, self.dataloaders = runner, loops, [loop.dataloader for loop in loops]
        self.dataloader = self.dataloaders[0]

    def run(self) -> Dict[str, float]:
        self.runner.call_hook('before_val')
        self.runner.call_hook('before_val_epoch')
        self.runner.model.eval()
        for loop in self.loops:
            for number, batch in enumerate(loop.dataloader):
                loop.run_iter(number, batch)
        self.runner.call_hook('after_val_epoch', metrics={})
        self.runner.call_hook('after_val')
        return {}


@pytest.mark.slow
def test_a_loop_over_several_data_loaders(roots: List[str], work_dir: str) -> None:
    config: Config = tiny_config(roots[0], work_dir)
    add_loop(config, 'val')
    loaders = [copy.deepcopy(config.val_dataloader) for _ in roots]
    for loader, root in zip(loaders, roots):
        loader.dataset.data_root = root
    config.val_dataloader, config.val_cfg = loaders, dict(type='TwoLoaders')
    run = Run(config)
    run.runner.val()
    expected = {path: pixels for root in roots for path, pixels in planted(root, 'gtFine/val').items()}
    assert named(run, 'val') == expected
    assert files_seen(run, 'val') == 2 * VAL_IMAGES


@pytest.mark.slow
def test_a_data_set_without_a_root_may_have_any_name() -> None:
    def held(**said: Any) -> Any:
        return SimpleNamespace(**said)

    rooted, bare = held(data_root='data/a'), held(data_root=None)
    assert find_naming_roots(held(dataset=rooted)) == ['data/a']
    assert find_naming_roots(held(datasets=[rooted, held(data_root='data/../data/a/')])) == [
        'data/a',
        'data/../data/a/',
    ]
    for other in (bare, held(), held(data_root=''), held(data_root='data/b')):
        assert find_naming_roots(held(datasets=[rooted, other])) == []
