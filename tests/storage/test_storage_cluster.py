"""What happens to a scan of S3 on a cluster when one of its processes is killed in the middle."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import numpy as np
import pytest
from PIL import Image

pytest.importorskip('distributed')

from local_cluster import Cluster, cluster
from servers import environment, s3_server, upload
from slow_proxy import SlowProxy

pytestmark = pytest.mark.slow
FILES = 240
URL = 's3://bucket/labels'
#: Seconds before every answer, until something was killed.
LATENCY = 0.3


@pytest.fixture(scope='module')
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowProxy]:
    """S3, with label maps that all differ."""
    for package in ('s3fs', 'moto', 'flask_cors'):
        pytest.importorskip(package, reason='S3 is read by s3fs; the server is that of moto')
    root = tmp_path_factory.mktemp('labels')
    for number in range(FILES):
        pixels = np.full((8, 8), number % 7, np.uint8)
        pixels[0, : number % 9] = (number + 1) % 5
        Image.fromarray(pixels).save(root / f'{number:03d}.png')
    with s3_server() as port, pytest.MonkeyPatch.context() as patch:
        proxy = SlowProxy(port)
        proxy.remembers = True
        for name, value in environment(proxy.port).items():
            patch.setenv(name, value)
        upload(root, URL, port)
        yield proxy
        proxy.close()


@pytest.fixture(scope='module')
def expected(proxy: SlowProxy, tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Any]:
    """The facts, read on this machine."""
    folder = tmp_path_factory.mktemp('expected')
    proxy.latency = 0
    _, facts = ended(started(folder, '--processes', '1'), folder)
    return facts['facts']


@contextmanager
def slow(proxy: SlowProxy) -> Iterator[None]:
    """Long enough to kill something in the middle."""
    proxy.latency = LATENCY
    try:
        yield
    finally:
        proxy.latency = 0


@pytest.fixture(scope='module')
def running(proxy: SlowProxy) -> Iterator[Cluster]:
    with cluster(3) as three:
        yield three


def started(folder: Path, *more: str) -> subprocess.Popen:
    """The command, in a process of its own."""
    words = ['scan', URL, '--num-classes', '5', '--journal', str(folder / 'journal.jsonl')]
    words += ['--json', str(folder / 'scan.json'), *more]
    return subprocess.Popen([sys.executable, '-m', 'mmguard.cli', *words], stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen, folder: Path) -> Any:
    """Return its standard error without the progress, and its JSON, if there is one."""
    lines = process.communicate(timeout=120)[1].splitlines(keepends=True)
    error = ''.join(line for line in lines if not re.fullmatch(r'mmguard scan: .* \(\d+ s\)\n', line))
    file = folder / 'scan.json'
    return error, json.loads(file.read_text())['datasets'][0] if file.exists() else None


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lines_in(folder: Path) -> int:
    file = folder / 'journal.jsonl'
    return file.read_bytes().count(b'"path"') if file.exists() else 0


def test_a_client_that_was_killed_is_resumed_from_its_journal(
    proxy: SlowProxy, expected: Dict[str, Any], running: Cluster, tmp_path: Path
) -> None:
    with slow(proxy):
        first = started(tmp_path, '--dask', running.address)
        wait_until(lambda: lines_in(tmp_path) > 40)
        first.send_signal(signal.SIGKILL)
        first.communicate()
    kept = lines_in(tmp_path)
    assert 40 < kept < FILES
    _, second = ended(started(tmp_path, '--dask', running.address, '--resume'), tmp_path)
    assert second['facts'] == expected
    assert (second['decoded'], second['reused']) == (FILES - kept, kept)


def test_without_a_worker_a_scan_says_that_it_waits(proxy: SlowProxy, expected: Dict[str, Any], tmp_path: Path) -> None:
    with cluster(1) as running:
        with slow(proxy):
            scan = started(tmp_path, '--dask', running.address)
            wait_until(lambda: lines_in(tmp_path) > 20)
            running.workers.pop().kill()
            said = scan.stderr.readline()
            assert f'dask worker {running.address}' in said
            assert '--resume' in said
            running.add_workers(2)
        error, done = ended(scan, tmp_path)
    assert error == ''
    assert done['facts'] == expected


def test_without_its_scheduler_a_scan_ends_and_another_goes_on(
    proxy: SlowProxy, expected: Dict[str, Any], running: Cluster, tmp_path: Path
) -> None:
    with slow(proxy):
        scan = started(tmp_path, '--dask', running.address)
        wait_until(lambda: lines_in(tmp_path) > 40)
        running.scheduler.kill()
    error, nothing = ended(scan, tmp_path)
    assert (scan.returncode, nothing) == (2, None)
    assert running.address in error
    assert '--resume' in error
    assert error.count('\n') == 1
    kept = lines_in(tmp_path)
    assert 40 < kept < FILES
    with cluster(1) as other:
        _, done = ended(started(tmp_path, '--dask', other.address, '--resume'), tmp_path)
    assert done['facts'] == expected
    assert (done['decoded'], done['reused']) == (FILES - kept, kept)


_ENDS = """
import os
from mmguard.formats.maps import read, source

def ends(item, *more):
    return os._exit(1) if item.path.endswith('7.png') else read.read_map(item, *more)

source.read_map = ends
"""


def test_a_file_that_ends_every_worker_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv('DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES', '0')  # a retry takes a worker each time
    (tmp_path / 'preload.py').write_text(_ENDS)
    (tmp_path / 'labels').mkdir()
    for number in range(10):
        Image.fromarray(np.full((8, 8), number % 5, np.uint8)).save(tmp_path / 'labels' / f'{number}.png')
    words = ['scan', str(tmp_path / 'labels'), '--num-classes', '5', '--json', str(tmp_path / 'scan.json')]
    with cluster(4, '--preload', str(tmp_path / 'preload.py')) as running:
        words += ['--journal', str(tmp_path / 'journal'), '--dask', running.address]
        subprocess.run([sys.executable, '-m', 'mmguard.cli', *words], timeout=120)
    (done,) = json.loads((tmp_path / 'scan.json').read_text())['datasets']
    assert done['decoded'] == 10
    assert list(done['facts']['maps']['unreadable'].values()) == [['7.png']]
