"""A scan in the workers of any executor: the same JSON, few chunks in flight, nothing missing if a worker dies."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest
from executor_cases import KINDS, Scan, write_sets
from label_files import BLOCKS, write

import mmguard
from mmguard.cli import main
from mmguard.errors import CannotRun
from mmguard.formats.maps import sources as engine
from mmguard.formats.maps.summary import MapItem, MapRecord
from mmguard.scanning.executors import AHEAD, AnyExecutor

pytestmark = pytest.mark.skipif(sys.platform != 'linux', reason='forks')
FORK = multiprocessing.get_context('fork')


@pytest.fixture(scope='module')
def scans(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Scan]:
    return write_sets(tmp_path_factory.mktemp('sets'))


class KilledWorker(ProcessPoolExecutor):
    """A pool that loses a worker at its fourth call."""

    calls = 0

    def submit(self, *args: Any, **kwargs: Any) -> Future:
        self.calls += 1
        future = super().submit(*args, **kwargs)
        if self.calls == 4:
            os.kill(next(iter(self._processes)), signal.SIGKILL)
        return future


EXECUTORS: Dict[str, Callable[[], Executor]] = {
    'processes': lambda: ProcessPoolExecutor(2, FORK),
    'spawned': lambda: ProcessPoolExecutor(1, multiprocessing.get_context('spawn')),
    'threads': lambda: ThreadPoolExecutor(4),
    'a killed worker': lambda: KilledWorker(2, FORK),
}


@pytest.mark.parametrize('kind', KINDS)
@pytest.mark.parametrize('name', EXECUTORS)
def test_the_same_json(scans: Dict[str, Scan], name: str, kind: str) -> None:
    expected = scans[kind](processes=1)
    with EXECUTORS[name]() as executor:
        assert scans[kind](executor=executor) == expected
    assert scans[kind](processes=2) == expected


def make_maps(folder: Path, number: int) -> str:
    for name in range(number):
        write(folder / f'{name:04d}.png', BLOCKS)
    return str(folder)


def test_only_the_file_that_kills_its_worker_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    read_map, folder = engine.read_map, make_maps(tmp_path, 300)
    here = os.getpid()

    def deadly(item: MapItem, *rest: Any) -> MapRecord:
        if item.path.endswith('0033.png'):
            assert os.getpid() != here, 'a file that kills is never read in the process of the user'
            os.kill(os.getpid(), signal.SIGKILL)
        return read_map(item, *rest)

    monkeypatch.setattr(engine, 'read_map', deadly)
    with ProcessPoolExecutor(2, FORK) as executor, caplog.at_level(logging.WARNING, 'mmguard'):
        found = mmguard.scan(folder, num_classes=5, executor=executor)
    (finding,) = found.findings
    assert (finding.code, [Path(file).name for file in finding.files]) == ('MG132', ['0033.png'])
    assert sum(found.record['datasets'][0]['facts']['histogram'].values()) == 299 * BLOCKS.size
    assert len(caplog.records) == 1


class Counting(ThreadPoolExecutor):
    """Threads that count their calls in flight, and return the result of an equal call before, as dask does."""

    def __init__(self) -> None:
        super().__init__(2)
        self.in_flight: List[Future] = []
        self.most = 0
        self.known: Dict[Any, Future] = {}

    def submit(self, call: Any, *args: Any, **kwargs: Any) -> Future:  # type: ignore[override]
        key = (call, repr(args))
        if key not in self.known:
            self.known[key] = super().submit(call, *args, **kwargs)
        self.in_flight = [one for one in self.in_flight if not one.done()] + [self.known[key]]
        self.most = max(self.most, len(self.in_flight))
        return self.known[key]


class Slow:
    """A task of numbers."""

    def scan(self, items: List[Any]) -> int:
        time.sleep(0.001)
        return len(items)

    def report_crash(self, item: Any) -> int:
        raise AssertionError


def test_few_chunks_are_in_flight_and_names_are_taken_as_they_are_needed() -> None:
    taken = 0

    def chunks() -> Iterator[List[MapItem]]:
        nonlocal taken
        for number in range(1000):
            taken += 1
            yield [MapItem(f'missing/{number}.png')]

    with Counting() as executor:
        results = AnyExecutor(executor)(chunks(), Slow())
        next(results)
        assert taken <= AHEAD
        assert 1 + sum(results) == taken == 1000
    assert 2 < executor.most <= AHEAD


def test_a_second_scan_reads_the_files_again(tmp_path: Path) -> None:
    folder = make_maps(tmp_path, 3)
    with Counting() as executor:
        assert mmguard.scan(folder, num_classes=5, executor=executor)
        write(tmp_path / '0001.png', BLOCKS + 40)
        assert not mmguard.scan(folder, num_classes=5, executor=executor)


def test_a_worker_that_does_not_see_the_files_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hide() -> None:
        os.chdir('/')
        monkeypatch.setattr(os.path, 'exists', lambda path: False)

    folder = make_maps(tmp_path, 3)
    with ProcessPoolExecutor(1, FORK, hide) as executor, pytest.raises(CannotRun, match=r'000.\.png .* runs in /\.'):
        mmguard.scan(folder, executor=executor)


def test_an_error_in_a_worker_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_maps(tmp_path, 3)

    def fail(*args: Any) -> None:
        raise ModuleNotFoundError("No module named 'mmguard'")

    monkeypatch.setattr(engine, 'read_map', fail)
    with ThreadPoolExecutor(1) as executor, pytest.raises(CannotRun, match=r"worker .* No module named 'mmguard'"):
        mmguard.scan(folder, executor=executor)


def test_processes_and_an_executor_exclude_each_other(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match='not both'):
        mmguard.scan(str(tmp_path), processes=2, executor=executor)
    with pytest.raises(SystemExit):
        main(['scan', str(tmp_path), '--processes', '2', '--dask', 'localhost:1'])
    assert '--dask' in capsys.readouterr().err
