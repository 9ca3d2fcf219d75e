"""What a dying training leaves behind, through the real Runner."""

from __future__ import annotations

import os
import os.path as osp
import signal
import subprocess
import sys
import time
from functools import partial
from glob import glob
from typing import Any, Dict, List

import pytest
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from small_runs import Run, expected_samples, tiny_config

from mmguard.log.flight_record import read_record

pytestmark = pytest.mark.slow

HERE = osp.dirname(__file__)


@HOOKS.register_module()
class TroubleHook(Hook):
    """Something goes wrong in an iteration: an error, a wait, or SIGTERM."""

    def __init__(self, iteration: int, what: str) -> None:
        self.iteration, self.what = iteration, what

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        if runner.iter != self.iteration:
            return
        if self.what == 'error':
            data_batch['data_samples'][0].gt_sem_seg.data.fill_(77)  # behind the guard
        elif self.what == 'wait':
            time.sleep(2)
        else:
            os.kill(os.getpid(), getattr(signal, self.what))


def config_of(root: str, work_dir: str, what: str, iteration: int = 3, **recorder: Any) -> Config:
    config = tiny_config(root, work_dir, iters=6)
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    config.custom_hooks += [
        dict(type='FlightRecorderHook', **recorder),
        dict(type='TroubleHook', iteration=iteration, what=what),
    ]
    return config


def record_in(work_dir: str) -> Dict[str, Any]:
    (path,) = glob(osp.join(work_dir, '*', 'label_guard_crash.json'))
    assert not glob(osp.join(work_dir, '*', '*.tmp'))
    return read_record(path)


def sources(batches: List[Dict[str, Any]]) -> List[List[str]]:
    return [[sample['source'] for sample in batch['samples']] for batch in batches]


def test_an_exception_leaves_the_last_batches(cityscapes: str, work_dir: str) -> None:
    run = Run(config_of(cityscapes, work_dir, 'error', capacity=3))
    with pytest.raises(IndexError, match='Target 77 is out of bounds'):
        run.train()
    record = record_in(work_dir)
    assert (record['reason'], record['iter'], record['rank']) == ('exception', 4, 0)
    assert record['exception']['type'] == 'IndexError'
    assert 'Target 77' in record['exception']['message']
    assert 'cross_entropy' in record['exception']['traceback']
    expected = expected_samples(cityscapes, 'gtFine/train')
    names = [sample['source'] for sample in expected]
    assert [batch['iter'] for batch in record['batches']] == [2, 3, 4]
    assert sources(record['batches']) == [names[2:4], names[4:6], names[6:8]]
    assert [batch['losses'] is None for batch in record['batches']] == [False, False, True]
    assert record['batches'][0]['losses']['loss'] > 0
    tallies = record['batches'][0]['samples'][0]['tallies']['pixels']
    assert (tallies['skipped'], tallies['values']) == (expected[2]['skipped'], expected[2]['values'])
    assert osp.exists(record['batches'][0]['samples'][0]['path'])
    assert 'label_guard_crash.json written: exception' in run.log


def test_an_error_in_loading_is_recorded_with_the_batches_before(cityscapes: str, work_dir: str, tmp_path: Any) -> None:
    config = config_of(cityscapes, work_dir, 'wait', iteration=99)
    config.train_dataloader.dataset.pipeline[1] = dict(type='LoadAnnotations', imdecode_backend='no such backend')
    with pytest.raises(Exception):  # noqa: B017 (mmcv's own; which is not our matter)
        Run(config).train()
    record = record_in(work_dir)
    assert record['reason'] == 'exception'
    assert record['batches'] == []


def test_ctrl_c_is_recorded(cityscapes: str, work_dir: str, request: pytest.FixtureRequest) -> None:
    # Shells start what runs in the background with Ctrl-C ignored.
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        Run(config_of(cityscapes, work_dir, 'SIGINT')).train()
    record = record_in(work_dir)
    assert record['exception']['type'] == 'KeyboardInterrupt'


def test_a_slow_iteration_is_recorded_and_training_goes_on(cityscapes: str, work_dir: str) -> None:
    run = Run(config_of(cityscapes, work_dir, 'wait', timeout=1)).train()
    record = record_in(work_dir)
    assert record['reason'].startswith('an iteration takes longer than timeout=1 s')
    assert record['batches'][-1]['iter'] == 4
    assert run.runner.iter == 6


def test_a_training_that_ends_well_leaves_nothing(cityscapes: str, work_dir: str) -> None:
    before = signal.getsignal(signal.SIGTERM)
    Run(config_of(cityscapes, work_dir, 'wait', iteration=99, timeout=30)).train()
    assert not glob(osp.join(work_dir, '*', 'label_guard_crash*'))
    assert signal.getsignal(signal.SIGTERM) is before


CHILD = """
import sys
sys.path[:0] = sys.argv[3:]
from test_flight_recorder import config_of
from small_runs import Run
Run(config_of(sys.argv[1], sys.argv[2], 'SIGTERM')).train()
"""


def test_sigterm_writes_the_file_and_still_ends_the_process(cityscapes: str, work_dir: str) -> None:
    arguments = [sys.executable, '-c', CHILD, cityscapes, work_dir, HERE, osp.dirname(HERE)]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=100)
    assert done.returncode == -signal.SIGTERM, done.stderr[-2000:]
    record = record_in(work_dir)
    assert (record['reason'], record['iter'], record['exception']) == ('SIGTERM', 4, None)


def test_a_disk_that_is_full_does_not_hide_the_error(cityscapes: str, work_dir: str) -> None:
    run = Run(config_of(cityscapes, work_dir, 'error', out_file='vis_data'))
    with pytest.raises(IndexError, match='Target 77'):
        run.train()
    assert 'cannot be written' in run.log
