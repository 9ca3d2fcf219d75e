"""Files of the same name below several data roots are several files, in the log and to `mmguard report`."""

from __future__ import annotations

import copy
import os.path as osp
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, List

import pytest
from mmengine.config import Config
from mmengine.registry import LOOPS
from mmengine.runner import ValLoop
from small_det_runs import MAKERS, faults_in, leaf_datasets, small_config
from small_runs import TRAIN_IMAGES, VAL_IMAGES, Run, add_loop, expected_samples, make_cityscapes, tiny_config, train

from mmguard.hooks.discovery import naming_roots_of
from mmguard.tools.report.mode_report import sections_of
from mmguard.tools.report.run_report import read_report

pytestmark = pytest.mark.slow


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
    (found,) = [one for one in read_report(Path(run.log_dir)).modes if one.mode == mode]
    return found.in_all.files


@pytest.mark.parametrize(('times', 'workers'), [(1, 0), (2, 0), (1, 2)])
def test_two_roots_of_label_maps(times: int, workers: int, roots: List[str], work_dir: str) -> None:
    config = tiny_config(roots[0], work_dir, iters=8 * times)
    loader = config.train_dataloader
    loader.num_workers, loader.dataset = workers, both(loader.dataset, roots, times)
    run = train(config)
    assert named(run) == planted(roots[1], 'gtFine/train')
    assert files_seen(run) == 2 * TRAIN_IMAGES
    (report,) = read_report(Path(run.log_dir)).modes
    opened = {worst.label_path for section in sections_of(report, []) for worst in section.worst}
    assert opened == set(planted(roots[1], 'gtFine/train'))


def test_one_root_in_several_data_sets_is_left_out_of_the_names(roots: List[str], work_dir: str) -> None:
    config = tiny_config(roots[1], work_dir, iters=8)
    config.train_dataloader.dataset = both(config.train_dataloader.dataset, [roots[1], roots[1] + '/'])
    found = {osp.relpath(path, roots[1]): pixels for path, pixels in planted(roots[1], 'gtFine/train').items()}
    assert named(train(config)) == found


def test_two_roots_of_boxes(tmp_path: Path) -> None:
    clean = MAKERS['mask_rcnn'](str(tmp_path / 'first'), faults=())
    faulty = MAKERS['mask_rcnn'](str(tmp_path / 'second'))
    config = small_config('mask_rcnn', clean, str(tmp_path), epochs=2)
    (dataset,) = leaf_datasets(config.train_dataloader.dataset)
    config.train_dataloader.dataset = both(dataset, [clean, faulty])
    run = train(config)
    expected = {osp.join(faulty, fault.source) for fault in faults_in('mask_rcnn', faulty, 'train')}
    assert named(run).keys() == expected


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


def test_a_data_set_without_a_root_may_have_any_name() -> None:
    def held(**said: Any) -> Any:
        return SimpleNamespace(**said)

    rooted, bare = held(data_root='data/a'), held(data_root=None)
    assert naming_roots_of(held(dataset=rooted)) == ['data/a']
    assert naming_roots_of(held(datasets=[rooted, held(data_root='data/../data/a/')])) == ['data/a', 'data/../data/a/']
    for other in (bare, held(), held(data_root=''), held(data_root='data/b')):
        assert naming_roots_of(held(datasets=[rooted, other])) == []
