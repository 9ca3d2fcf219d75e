"""What a dying training leaves behind, through the real Runner."""

from __future__ import annotations

import json
import os
import os.path as osp
import signal
import time
from glob import glob
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
from ranks import run_ranks
from small_runs import LOAD, PACK, Run, expected_samples, make_cityscapes, tiny_config
from warm import Program, run_all

from mmguard.cli import main
from mmguard.facts.run import MISSED_ANOTHER
from mmguard.log.flight_record import KILLED, RUNNING, Flight, read_flight

pytestmark = pytest.mark.slow

HERE = osp.dirname(__file__)


@HOOKS.register_module()
class TroubleHook(Hook):
    """Something goes wrong in an iteration: an error or a signal."""

    def __init__(self, iteration: int, what: str) -> None:
        self.iteration, self.what = iteration, what

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        if runner.iter != self.iteration:
            return
        if self.what == 'error':
            data_batch['data_samples'][0].gt_sem_seg.data.fill_(77)  # behind the guard
        else:
            self.iteration = -1  # once, where training goes on afterwards
            os.kill(os.getpid(), getattr(signal, self.what))


def config_of(root: str, work_dir: str, what: str = 'error', iteration: int = 99, capacity: int = 20) -> Config:
    config = tiny_config(root, work_dir, iters=6)
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    config.custom_hooks += [
        dict(type='FlightRecorderHook', capacity=capacity),
        dict(type='TroubleHook', iteration=iteration, what=what),
    ]
    return config


def files_in(work_dir: str) -> List[str]:
    return glob(osp.join(work_dir, '*', '*label_guard_flight*'))


def record_in(work_dir: str) -> Flight:
    (path,) = files_in(work_dir)
    return read_flight(path)


def methods_of(runner: Any) -> Any:
    """What the runner calls in training, as it is now."""
    return runner.train_loop.run.__qualname__, runner.model.train_step.__qualname__, signal.getsignal(signal.SIGTERM)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Shells start what runs in the background with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_exception_leaves_the_last_batches(cityscapes: str, work_dir: str) -> None:
    run = Run(config_of(cityscapes, work_dir, 'error', 3, capacity=3))
    with pytest.raises(IndexError, match='77'):
        run.train()
    record = record_in(work_dir)
    assert (record.reason, record.iter, record.rank) == ('exception', 4, 0)
    assert record.exception.type == 'IndexError'
    assert 'Target 77' in record.exception.message
    assert 'cross_entropy' in record.exception.traceback
    names = [sample['source'] for sample in expected_samples(cityscapes, 'gtFine/train')]
    assert [batch.iter for batch in record.batches] == [2, 3, 4]
    paths = [[sample.path for sample in batch.samples] for batch in record.batches]
    assert paths == [[osp.join(cityscapes, name) for name in names[first : first + 2]] for first in (2, 4, 6)]
    assert repr(files_in(work_dir)[0]) in run.log


def test_an_error_in_loading_is_recorded_with_the_batches_before(cityscapes: str, work_dir: str) -> None:
    config = config_of(cityscapes, work_dir)
    config.train_dataloader.dataset.pipeline[1] = dict(type='LoadAnnotations', imdecode_backend='no such backend')
    with pytest.raises(Exception):  # noqa: B017 (mmcv's own; which is not our matter)
        Run(config).train()
    record = record_in(work_dir)
    assert record.reason == 'exception'
    assert record.batches == []


def test_after_ctrl_c_a_second_training_ends_well_and_leaves_nothing(
    cityscapes: str, work_dir: str, ctrl_c: None
) -> None:
    """As in a notebook: the same runner goes on."""
    run = Run(config_of(cityscapes, work_dir, 'SIGINT', 3))
    before = methods_of(run.runner)
    with pytest.raises(KeyboardInterrupt):
        run.train()
    record = record_in(work_dir)
    assert (record.exception.type, record.iter) == ('KeyboardInterrupt', 4)
    assert methods_of(run.runner) == before
    run.train()
    assert run.runner.iter == 6
    assert methods_of(run.runner) == before
    assert files_in(work_dir) == []


CHILD = """
import sys
sys.path[:0] = sys.argv[1:3]
import test_flight_recorder
from mmengine.config import Config
from small_runs import Run
Run(Config.fromfile(sys.argv[3])).train()
"""


def trained_in_a_child(config: Config) -> Program:
    path = osp.join(config.work_dir, 'config.py')
    os.makedirs(config.work_dir, exist_ok=True)
    config.dump(path)
    return Program(CHILD, ['-c', HERE, osp.dirname(HERE), path])


def killed_at_50(tmp_path: Path, what: str) -> Tuple[int, str, str]:
    """A training whose only invalid label comes in iteration 50, in which it is killed."""
    root = make_cityscapes(str(tmp_path / 'data'), planted={5: (24, 33)})
    config = config_of(root, str(tmp_path / 'work'), what, 49)
    config.train_cfg.max_iters = 60
    config.train_dataloader.dataset.update(pipeline=[*LOAD, PACK], indices=[1, 2] * 49 + [3, 5])
    (ended,) = run_all([trained_in_a_child(config)], timeout=120)
    (record,) = files_in(str(tmp_path / 'work'))
    return ended.returncode, str(tmp_path / 'work' / 'config.py'), record


@pytest.mark.parametrize('what', ['SIGKILL', 'SIGTERM', 'SIGSEGV'])
def test_whatever_kills_it_the_sample_is_found(tmp_path: Path, what: str, capsys: Any) -> None:
    code, config, path = killed_at_50(tmp_path, what)
    assert code == -getattr(signal, what)
    record = read_flight(path)
    assert (record.reason, record.iter) == (KILLED, 50)
    assert [batch.iter for batch in record.batches] == list(range(31, 51))
    if what == 'SIGKILL':
        assert main(['replay', config, path]) == 1
        assert 'aachen_000005_000019_gtFine_labelTrainIds.png' in capsys.readouterr().out
        assert main(['report', osp.dirname(path), '--json', '-']) == 1
        (rank,) = json.loads(capsys.readouterr().out)['ranks']
        assert (rank['rank'], rank['ending'], rank['iteration'], rank['record']) == (0, KILLED, 50, path)


RANKS = """
sys.path.insert(0, sys.argv[3])
from small_runs import Run
from test_flight_recorder import config_of
config = distributed(config_of(sys.argv[1], sys.argv[2], 'SIGKILL', 2 if rank == 1 else 99))
config.custom_hooks.append(dict(type='RankGuardHook'))
Run(config).train()
"""


def test_the_rank_that_was_killed_comes_before_the_one_that_missed_it(
    cityscapes: str, work_dir: str, capsys: Any
) -> None:
    missing, killed = run_ranks(RANKS, cityscapes, work_dir, HERE)
    assert killed.returncode == -signal.SIGKILL
    assert missing.returncode == 1
    main(['report', work_dir, '--json', '-'])
    ranks = json.loads(capsys.readouterr().out)['ranks']
    assert [(rank['rank'], rank['ending'], rank['iteration']) for rank in ranks] == [
        (1, KILLED, 3),
        (0, MISSED_ANOTHER, 3),
    ]


def test_a_training_that_goes_on_is_no_crash(cityscapes: str, work_dir: str, capsys: Any) -> None:
    config = config_of(cityscapes, work_dir, 'SIGSTOP', 3)
    config.train_dataloader.num_workers = 2  # forked, with the file open
    child = trained_in_a_child(config)
    try:
        deadline = time.monotonic() + 60
        while '[3/6]' not in child.output:
            assert time.monotonic() < deadline, child.output
            time.sleep(0.05)
        (path,) = files_in(work_dir)
        while (record := read_flight(path)).iter < 4:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert record.reason == RUNNING
        main(['report', work_dir, '--json', '-'])
        assert json.loads(capsys.readouterr().out)['ranks'] == []
    finally:
        child.kill()
    assert read_flight(path).reason == KILLED


@pytest.mark.stock_error
def test_a_disk_that_is_full_does_not_hide_the_error(cityscapes: str, work_dir: str) -> None:
    run = Run(config_of(cityscapes, work_dir, 'error', 3))
    os.makedirs(osp.join(run.runner.log_dir, 'label_guard_flight.jsonl'))
    with pytest.raises(IndexError, match='77'):
        run.train()
    assert sum(' guard: ' in line and 'Errno' in line for line in run.log.splitlines()) == 1
