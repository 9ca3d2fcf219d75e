"""What reaches the reader: console, scalars.json, TensorBoard, the table, the JSON lines after a crash and a resume."""

from __future__ import annotations

import json
import os
import os.path as osp
import re
import signal
from glob import glob
from pathlib import Path
from typing import Any, List

import pytest
from small_runs import LOAD, PACK, Run, add_loop, read_lines, tiny_config, train
from warm import run as run_program

pytestmark = pytest.mark.slow

#: Skipped pixels of the first four batches of two.
SKIPPED = [77, 252, 63, 161]


def test_scalars_reach_console_and_scalars_json(cityscapes: str, work_dir: str) -> None:
    """As integers, and only those that were ever more than 0."""
    run = train(tiny_config(cityscapes, work_dir))
    shown = [{name: value for name, value in line.items() if name.startswith('guard/')} for line in run.scalars]
    assert shown == [{'guard/skipped_pixels': skipped} for skipped in SKIPPED]
    assert [line['step'] for line in run.scalars] == [1, 2, 3, 4]
    printed = [re.findall(r'(guard/\S+): (\S+)', line) for line in run.log.splitlines() if 'Iter(train)' in line]
    assert printed == [[('guard/skipped_pixels', str(skipped))] for skipped in SKIPPED]
    history, _ = run.runner.message_hub.get_scalar('train/guard/skipped_pixels').data
    assert history.tolist() == SKIPPED


def test_loss_counts_are_printed_as_they_are_not_as_a_mean(cityscapes: str, work_dir: str) -> None:
    """mmengine averages whatever has 'loss' in its name."""
    run = train(tiny_config(cityscapes, work_dir, pipeline=[*LOAD, PACK]))
    assert [line['guard/loss_skipped'] for line in run.scalars] == SKIPPED
    losses = run.runner.message_hub.get_scalar('train/loss').data[0]
    assert run.scalars[-1]['loss'] == pytest.approx(losses.mean(), rel=1e-5)  # the loss itself still is


def test_validation_scalars_sum_over_the_loop(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.train_cfg.val_interval = 4
    add_loop(config, 'val')
    run = train(config)
    assert run.scalars[-1]['guard/val/skipped_pixels'] == 91
    assert 'mIoU' in run.scalars[-1]


def test_human_line_hint_and_table(cityscapes: str, work_dir: str, snapshot: Any) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks[0].top_k = 2
    run = train(config)
    assert len(run.guard_lines) == 4
    (warning,) = run.warnings
    assert 'MG101' in warning
    table = run.log[run.log.index('guard: summary') :]
    assert osp.join(run.log_dir, 'label_guard.jsonl') in table
    shown = '\n'.join([run.guard_lines[0], warning, table])
    snapshot('log', 'training', shown.replace(run.log_dir, 'LOG').replace(cityscapes, 'DATA'))


def test_no_file_where_none_is_wanted(cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.custom_hooks[0].out_file = None
    run = train(config)
    assert not glob(osp.join(run.log_dir, '*.jsonl'))
    assert len(run.guard_lines) == 4


def test_a_run_without_any_guard_is_reported_so(clean_cityscapes: str, work_dir: str, snapshot: Any) -> None:
    config = tiny_config(clean_cityscapes, work_dir, pipeline=[*LOAD, PACK], iters=1)
    config.model.decode_head.loss_decode = dict(type='CrossEntropyLoss')
    (warning,) = train(config).warnings
    snapshot('log', 'training without a guard', warning)


def test_a_resumed_run_appends(cityscapes: str, work_dir: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # mmengine 0.10.7 saves more than weights and loads with torch's default, which refuses that since 2.6.
    monkeypatch.setenv('TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD', '1')
    config = tiny_config(cityscapes, work_dir, iters=4)
    config.default_hooks.checkpoint = dict(type='CheckpointHook', by_epoch=False, interval=2)
    stopped = config.copy()
    stopped.custom_hooks = [*config.custom_hooks, dict(type='StopAt', iteration=3)]
    first = Run(stopped)
    with pytest.raises(FloatingPointError):
        first.train()
    assert [line['iter'] for line in first.lines()] == [1, 2, 3]

    resumed = tiny_config(cityscapes, work_dir, iters=4)
    resumed.resume = True
    # The same folder, as with a fixed timestamp: what was logged must stay, half a last line included.
    run = Run(resumed)
    run.runner._log_dir = first.log_dir
    path = osp.join(first.log_dir, 'label_guard.jsonl')
    before = Path(path).read_text()
    with open(path, 'a') as file:
        file.write('{"mode": "train", "it')
    run.train()
    text = Path(path).read_text()
    assert text.startswith(before + '{"mode": "train", "it\n')
    lines = [json.loads(line) for line in text[len(before) :].splitlines()[1:]]
    assert [(line['iter'], line['skipped_pixels']) for line in lines] == [(3, 63), (4, 161)]
    history = run.runner.message_hub.get_scalar('train/guard/skipped_pixels').data[0]
    assert history.tolist() == SKIPPED


@pytest.mark.parametrize('workers', [0, 2])
def test_an_exception_loses_no_line(workers: int, cityscapes: str, work_dir: str) -> None:
    config = tiny_config(cityscapes, work_dir)
    config.train_dataloader.num_workers = workers
    config.custom_hooks.append(dict(type='StopAt', iteration=3))
    run = Run(config)
    with pytest.raises(FloatingPointError, match='planted'):
        run.train()
    assert [line['skipped_pixels'] for line in run.lines()] == SKIPPED[:3]


CHILD = """
import sys
from small_runs import tiny_config, train
config = tiny_config(sys.argv[1], sys.argv[2], iters=8)
config.custom_hooks.append(dict(type='StopAt', iteration=3, by='kill'))
train(config)
"""


def test_a_killed_process_loses_no_line(cityscapes: str, work_dir: str) -> None:
    tests = osp.dirname(osp.dirname(__file__))
    paths: List[str] = [tests, osp.dirname(tests)]
    environment = {**os.environ, 'PYTHONPATH': os.pathsep.join(paths)}
    done = run_program(CHILD, cityscapes, work_dir, environment=environment)
    assert done.returncode == -signal.SIGKILL, done.output
    (path,) = glob(osp.join(work_dir, '*', 'label_guard.jsonl'))
    assert [line['skipped_pixels'] for line in read_lines(path)] == SKIPPED[:3]


@pytest.mark.skipif(not osp.exists('/dev/full'), reason='needs /dev/full')
def test_a_full_disk_is_reported_once_and_training_goes_on(cityscapes: str, work_dir: str) -> None:
    run = Run(tiny_config(cityscapes, work_dir))
    os.symlink('/dev/full', osp.join(run.log_dir, 'label_guard.jsonl'))
    run.train()
    assert sum('label_guard.jsonl' in text for text in run.warnings) == 1
    assert len(run.scalars) == 4
    assert len(run.guard_lines) == 4
