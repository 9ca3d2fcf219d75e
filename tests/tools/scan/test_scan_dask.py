"""The same scan on a cluster, also when a worker is killed in the middle of it."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Callable, Iterator, List

import numpy as np
import pytest
from label_files import BLOCKS, write

from mmguard.errors import CannotRun
from mmguard.tools.scan import on_dask, on_worker
from mmguard.tools.scan.chunks import in_chunks
from mmguard.tools.scan.engine import ChunkResult, scan_chunk, scan_maps
from mmguard.tools.scan.on_dask import DaskCluster
from mmguard.tools.scan.on_worker import Group, Part, taken, together
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.sources.folder import FolderSource
from mmguard.tools.scan.summary import MapSummary

distributed = pytest.importorskip('distributed')
LABELS = MapSettings(num_classes=5)


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp('labels')
    for number in range(20):
        write(root / f'kind{number}.png', np.tile(np.roll(BLOCKS, number), (40, 40)))
    write(root / 'invalid.png', np.full_like(BLOCKS, 99))
    for number in range(300):
        os.link(root / f'kind{number % 20}.png', root / f'{number:04d}.png')
    return str(root)


@pytest.fixture
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as local:
        yield local


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_costs_its_retry_only(folder: str, cluster: Any) -> None:
    expected = scan_maps(FolderSource(folder, LABELS).items(), LABELS).summary
    mapper = DaskCluster(cluster.scheduler_address)
    killed = []

    def kill_one(files: int) -> None:
        if not killed:
            # On a cluster of processes: the pid that runs the tasks, not its nanny.
            with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                pids = client.run(os.getpid)
            killed.append(sorted(pids.values())[0])
            os.kill(killed[0], signal.SIGKILL)

    try:
        done = scan_maps(FolderSource(folder, LABELS).items(), LABELS, mapper, on_files=kill_one)
    finally:
        mapper.close()
    assert killed
    assert done.decoded == expected.files == 321
    assert done.summary.totals() == expected.totals()
    with pytest.raises(OSError, match='No such process'):
        os.kill(killed[0], 0)


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster in this process, whose groups are small and whose tree is deep."""
    monkeypatch.setattr(on_dask, '_GROUP', 1500)
    monkeypatch.setattr(on_dask, '_FAN_IN', 2)
    with distributed.LocalCluster(
        n_workers=5, threads_per_worker=1, processes=False, dashboard_address=None, silence_logs=50
    ) as local:
        yield local


def results_of(folder: str, cluster: Any, on_result: Callable[[ChunkResult], None] = lambda result: None) -> Any:
    """What the mapper gives, and their sum."""
    mapper = DaskCluster(cluster.scheduler_address)
    results, summary = [], MapSummary(LABELS)
    try:
        for result in mapper(in_chunks(FolderSource(folder, LABELS).items(), lambda: 4), LABELS):
            on_result(result)
            results.append(result)
            if result.summary is not None:
                summary.merge(result.summary)
    finally:
        mapper.close()
    return results, summary


def test_sums_are_added_up_on_the_workers(folder: str, threads: Any) -> None:
    results, summary = results_of(folder, threads)
    assert summary.totals() == scan_maps(FolderSource(folder, LABELS).items(), LABELS).summary.totals()
    sums = [result for result in results if result.summary is not None]
    records = [result for result in results if result.lines]
    assert not [result for result in sums if result.lines]
    assert len(records) == 81
    assert 2 <= len(sums) < 20  # one for each group
    assert not on_worker._held


def test_missing_sums_are_made_of_the_records(folder: str, threads: Any) -> None:
    """As where a worker dies after its records have come."""

    seen: List[ChunkResult] = []
    taken_away = 0

    def lose(result: ChunkResult) -> None:
        nonlocal taken_away
        seen.append(result)
        if len(seen) % 9 == 0:
            taken_away += sum(len(held.packed) for held in on_worker._held.values())
            on_worker._held.clear()

    _, summary = results_of(folder, threads, lose)
    assert taken_away > 0
    assert summary.totals() == scan_maps(FolderSource(folder, LABELS).items(), LABELS).summary.totals()


def test_nothing_is_counted_twice(folder: str) -> None:
    names = sorted(os.listdir(folder))[:6]
    one, two, three = (
        scan_chunk([MapItem(os.path.join(folder, name)) for name in names[start : start + 2]], LABELS).summary
        for start in (0, 2, 4)
    )
    assert one is not None
    before = one.totals()
    # Task 2 ran on two workers, of which one had been given up.
    part = together([Part(frozenset({1, 2}), one), Part(frozenset({2}), two), Part(), Part(frozenset({3}), three)])
    assert part.tasks == {1, 2, 3}
    assert part.summary is not None
    assert part.summary.files == 4
    assert one.totals() == before
    group = Group('journal', 'client', 0)
    on_worker._held[group] = on_worker._Held({1: b'', 2: b''}, one)
    assert taken(group, frozenset({2})) == Part()  # task 2 was split, and its files counted elsewhere
    assert not on_worker._held


def test_a_scan_that_another_client_goes_on_with_ends(folder: str, threads: Any) -> None:
    """The client that was thought dead was asleep."""
    later: List[Any] = []

    def go_on(result: ChunkResult) -> None:
        if not later:
            later.append(DaskCluster(threads.scheduler_address))
            journal = next(iter(on_worker._held)).journal
            later.append(later[0].goes_on_with(journal))

    try:
        with pytest.raises(CannotRun, match='another scan goes on with its journal'):
            results_of(folder, threads, go_on)
        assert len(later[1]) >= 4
    finally:
        later[0].close()


def test_a_scheduler_without_workers_is_not_waited_for(threads: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_dask, '_SECONDS', 0.2)
    threads.scale(0)
    address = threads.scheduler_address
    deadline = time.monotonic() + 20
    while threads.scheduler.workers and time.monotonic() < deadline:
        time.sleep(0.05)
    with pytest.raises(CannotRun, match=f'{address} has no worker: dask worker {address}'):
        DaskCluster(address)


def test_without_dask_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, 'distributed', None)
    with pytest.raises(CannotRun, match=r"pip install 'mmguard\[dask\]'"):
        DaskCluster('tcp://127.0.0.1:1')
