"""The whole demo: interrupted, then run again in the same folder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from warm import is_group_alive, run

pytest.importorskip('mmseg')
pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]


def start(folder: Path, iters: int) -> subprocess.Popen:
    command = [sys.executable, '-m', 'mmguard.cli', 'demo', '--out', str(folder), '--iters', str(iters)]
    return subprocess.Popen(
        command,
        cwd=str(ROOT),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding='utf-8',
        start_new_session=True,  # a group of its own, in which nothing must be left
    )


def wait_until(condition, process: subprocess.Popen, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.05)


@pytest.fixture(scope='module')
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp('demo') / 'mmguard_demo'


@pytest.mark.skipif(os.name == 'nt', reason='process groups are a matter of POSIX')
@pytest.mark.same_everywhere
def test_ctrl_c_leaves_nothing_behind(folder):
    process = start(folder, 20)
    log = folder / 'runs' / 'stock.txt'
    wait_until(lambda: log.is_file() and log.stat().st_size > 0, process, 120)  # the child is at work
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130, errors
    assert not is_group_alive(process.pid)
    assert errors.strip().splitlines()[-1].startswith('mmguard demo: ')
    assert 'Traceback' not in errors
    assert not list(folder.rglob('*.part'))


def test_the_whole_demo(folder):
    # 5 batches of 4: each of the 20 training images once.
    program = (
        f'import sys\nfrom mmguard.cli import main\nsys.exit(main(["demo", "--out", {str(folder)!r}, "--iters", "5"]))'
    )
    output, code = run(program, folder=str(ROOT), timeout=280)
    assert code == 0, output
    assert 'IndexError: Target' in output or 'device-side assert' in output  # of torch
    assert all(part in output for part in ('guard: iter ', '5/5 ', 'guard: summary', 'MG101', 'labels.html'))
    assert 'data:image/png;base64,' in (folder / 'labels.html').read_text()
    (log,) = (folder / 'runs' / 'guarded').glob('*/label_guard.jsonl')
    files = [sample['source'] for line in log.read_text().splitlines() for sample in json.loads(line)['samples']]
    assert len(files) == len(set(files)) == 6
    assert "type='GuardSegLabels'" in (folder / 'guarded.py').read_text()
    assert str(folder) not in (folder / 'guarded.py').read_text() + (folder / 'stock.py').read_text()
    assert not list(folder.rglob('*.part'))
