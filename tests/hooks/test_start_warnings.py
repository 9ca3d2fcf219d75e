"""What is said before the first iteration, of real runners: their configs were built."""

from __future__ import annotations

import os.path as osp
import uuid
from glob import glob
from typing import Any, List

import pytest
from mmengine.config import Config
from small_runs import GUARD, LOAD, PACK, Run, add_loop, runner_of, tiny_config

from mmguard.hooks.start_warnings import start_warnings

pytest.importorskip('mmdet')

CONFIGS = osp.join(osp.dirname(__file__), '..', '..', 'configs')
TRAIN_GUARD = 'train_dataloader.dataset.pipeline[3]'


def warnings_of(config: Config) -> List[str]:
    return start_warnings(runner_of(config))


def camvid_config(root: str, work_dir: str, head: int = 11, **guard: Any) -> Config:
    """A data set of 11 classes."""
    config = tiny_config(root, work_dir, pipeline=[*LOAD, PACK, dict(type='GuardSegLabels', **guard)])
    suffixes = dict(img_suffix='.png', seg_map_suffix='.png')
    dataset = dict(
        type='BaseSegDataset', data_root=root, **suffixes, metainfo=dict(classes=[f'c{i}' for i in range(11)])
    )
    prefix = dict(img_path='train', seg_map_path='trainannot')
    config.train_dataloader.dataset = dict(
        dataset, data_prefix=prefix, pipeline=config.train_dataloader.dataset.pipeline
    )
    config.model.decode_head.num_classes = head
    return config


def test_nothing_is_said_of_what_agrees(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    add_loop(config, 'val')
    assert warnings_of(config) == []


def test_a_guard_of_19_classes_before_a_head_of_11(camvid: str, work_dir: str) -> None:
    (warning,) = warnings_of(camvid_config(camvid, work_dir, num_classes=19))
    assert warning.startswith(f'MG225 {TRAIN_GUARD}.num_classes = 19')
    assert 'model.decode_head.num_classes' in warning
    assert 'num_classes=11' in warning


@pytest.mark.slow
def test_it_is_in_the_log_of_a_run_that_dies_of_it(camvid: str, work_dir: str) -> None:
    config = camvid_config(camvid, work_dir, num_classes=19)
    config.model.decode_head.loss_decode.type = 'CrossEntropyLoss'
    run = Run(config)
    with pytest.raises(IndexError):
        run.train()
    assert sum(text.startswith(f'MG225 {TRAIN_GUARD}.num_classes = 19') for text in run.warnings) == 1


def test_guard_and_head_of_19_classes_before_data_of_11(camvid: str, work_dir: str) -> None:
    (warning,) = warnings_of(camvid_config(camvid, work_dir, head=19, num_classes=19))
    assert warning.startswith('MG201 model.decode_head.num_classes = 19')


def test_a_guard_that_ignores_another_label_than_the_head(camvid: str, work_dir: str) -> None:
    (warning,) = warnings_of(camvid_config(camvid, work_dir, num_classes=11, ignore_index=11))
    assert warning.startswith(f'MG208 {TRAIN_GUARD}.ignore_index = 11')
    assert '255 (model.decode_head.ignore_index)' in warning


@pytest.mark.parametrize('guarded_loss', [True, False])
def test_validation_without_a_guard_is_named_once(guarded_loss: bool, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK] if guarded_loss else None)
    if not guarded_loss:
        config.model.decode_head.loss_decode.type = 'CrossEntropyLoss'
    for mode in ('val', 'test'):
        add_loop(config, mode, [*LOAD, PACK])
    (warning,) = warnings_of(config)
    assert warning.startswith('MG230 val_dataloader.dataset.pipeline')
    assert all(named in warning for named in ('test_dataloader.dataset.pipeline', 'GuardSegLabels'))


def test_nothing_is_said_of_a_run_without_any_guard(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK])
    config.model.decode_head.loss_decode.type = 'CrossEntropyLoss'
    add_loop(config, 'val', [*LOAD, PACK])
    assert warnings_of(config) == []


def one_channel(config: Config) -> None:
    config.model.decode_head.update(num_classes=2, out_channels=1)
    binary(config)


def one_class(config: Config) -> None:
    config.model.decode_head.update(num_classes=1)
    binary(config)


def binary(config: Config) -> None:
    config.model.decode_head.loss_decode.use_sigmoid = True
    config.train_dataloader.dataset.metainfo = dict(classes=['road', 'car'])
    config.train_dataloader.dataset.pipeline[3]['num_classes'] = 2


def reduced(config: Config) -> None:
    config.train_dataloader.dataset.update(type='BaseSegDataset', reduce_zero_label=True)
    config.train_dataloader.dataset.metainfo = dict(classes=[f'c{i}' for i in range(19)])


def own_ignore_index(config: Config) -> None:
    config.model.decode_head.ignore_index = 254
    config.train_dataloader.dataset.pipeline[3]['ignore_index'] = 254
    config.model.data_preprocessor.seg_pad_val = 254


def auxiliary_head(config: Config) -> None:
    config.model.auxiliary_head = dict(config.model.decode_head, in_index=1)


@pytest.mark.parametrize('change', [one_channel, one_class, reduced, own_ignore_index, auxiliary_head])
def test_nothing_is_said_of_heads_that_count_in_their_own_way(change: Any, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK, dict(GUARD)])
    change(config)
    assert warnings_of(config) == []


def test_a_runner_without_a_config() -> None:
    assert start_warnings(_Built()) == []


class _Built:
    cfg = Config()


def test_a_config_that_cannot_be_read_ends_no_training(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    runner = runner_of(config)
    runner.cfg.train_dataloader.dataset.pipeline = [dict(type='GuardSegLabels', num_classes=_Odd())]
    (warning,) = start_warnings(runner)
    assert 'RuntimeError: no number' in warning


class _Odd(int):
    def __repr__(self) -> str:
        raise RuntimeError('no number')


@pytest.mark.slow
@pytest.mark.parametrize('path', sorted(glob(osp.join(CONFIGS, '*', '*_guarded.py'))), ids=osp.basename)
def test_no_false_alarm_about_the_configs_that_ship(path: str, work_dir: str) -> None:
    config = Config.fromfile(path)
    config.work_dir, config.experiment_name = work_dir, f'run-{uuid.uuid4().hex}'
    config.visualizer.name = uuid.uuid4().hex
    assert warnings_of(config) == []  # built, and not initialized: no weights are downloaded
