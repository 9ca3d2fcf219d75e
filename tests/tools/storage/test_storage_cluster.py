"""What happens to a scan of S3 on a cluster when one of its processes is killed in the middle."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import numpy as np
import pytest
from local_cluster import GENERATED, Cluster, Process, cluster, resident
from PIL import Image
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
    """What it wrote on standard error, and its JSON, if there is one."""
    error = process.communicate(timeout=120)[1]
    file = folder / 'scan.json'
    return error, json.loads(file.read_text())['datasets'][0] if file.exists() else None


def fetched(proxy: SlowProxy) -> Counter:
    """Label map -> how often it was fetched."""
    return Counter(line for line in proxy.answered if line.startswith('GET') and line.endswith('.png'))


def peak_of(records: int, running: Cluster, folder: Path) -> float:
    """The most memory of a client that scans so many generated records, MiB."""
    for number in range(records):
        (folder / f'{number:05d}.png').touch()
    words = ['scan', str(folder), '--num-classes', '19', '--dask', running.address]
    words += ['--journal', str(folder / 'journal'), '--json', str(folder / 'scan')]
    client = subprocess.Popen([sys.executable, '-m', 'mmguard.cli', *words], stdout=subprocess.DEVNULL)
    peak = 0.0
    while client.poll() is None:
        peak = max(peak, resident(client.pid))
        time.sleep(0.05)
    assert json.loads((folder / 'scan').read_text())['datasets'][0]['decoded'] == records
    return peak


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def lines_in(folder: Path) -> int:
    file = folder / 'journal.jsonl'
    return file.read_bytes().count(b'"path"') if file.exists() else 0


def test_a_client_that_was_killed_is_resumed_and_no_file_is_read_twice(
    proxy: SlowProxy, expected: Dict[str, Any], running: Cluster, tmp_path: Path
) -> None:
    proxy.answered.clear()
    with slow(proxy):
        first = started(tmp_path, '--dask', running.address)
        wait_until(lambda: lines_in(tmp_path) > 40)
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert lines_in(tmp_path) < FILES
    _, second = ended(started(tmp_path, '--dask', running.address, '--resume'), tmp_path)
    assert second['facts'] == expected
    assert second['reused'] > 40
    assert second['decoded'] + second['reused'] == FILES
    counts = fetched(proxy)
    assert len(counts) == FILES
    assert counts.most_common(1)[0][1] == 1


def test_a_worker_that_was_killed_costs_what_it_had_in_work(
    proxy: SlowProxy, expected: Dict[str, Any], running: Cluster, tmp_path: Path
) -> None:
    proxy.answered.clear()
    with slow(proxy):
        scan = started(tmp_path, '--dask', running.address)
        wait_until(lambda: lines_in(tmp_path) > 100)
        running.workers.pop().kill()
    _, done = ended(scan, tmp_path)
    assert done['facts'] == expected
    assert done['decoded'] == FILES
    counts = fetched(proxy)
    assert len(counts) == FILES
    assert sum(counts.values()) < FILES + 100  # its sums are gone with it, and made of the records


def test_without_a_worker_a_scan_says_that_it_waits(proxy: SlowProxy, expected: Dict[str, Any], tmp_path: Path) -> None:
    with cluster(1) as running:
        with slow(proxy):
            scan = started(tmp_path, '--dask', running.address)
            wait_until(lambda: lines_in(tmp_path) > 20)
            running.workers.pop().kill()
            assert scan.stderr is not None
            said = scan.stderr.readline()
            assert f'{running.address} has no worker left' in said
            assert f'dask worker {running.address}' in said
            assert '--resume' in said
            running.add_workers(2)
            assert scan.stderr.readline() == 'mmguard scan: a worker is back, the scan goes on\n'
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
    assert f'the scheduler {running.address} does not answer any more' in error
    assert '--resume goes on' in error
    assert error.count('\n') == 1
    kept = lines_in(tmp_path)
    assert 40 < kept < FILES
    with cluster(1) as other:
        _, done = ended(started(tmp_path, '--dask', other.address, '--resume'), tmp_path)
    assert done['facts'] == expected
    assert (done['decoded'], done['reused']) == (FILES - kept, kept)


def test_neither_scheduler_nor_client_holds_the_records(tmp_path: Path) -> None:
    """A million of them: ``python -m benchmarks --only scale``."""
    few, many = tmp_path / 'few', tmp_path / 'many'
    few.mkdir()
    many.mkdir()
    with cluster(0) as running:
        running.workers.append(Process([GENERATED, running.address, '4'], '(Registered to)'))
        before = peak_of(100, running, few), resident(running.scheduler.pid)
        after = peak_of(4_000, running, many), resident(running.scheduler.pid)
    assert max(after) < 150
    assert [big - small < 20 for small, big in zip(before, after)] == [True, True]
