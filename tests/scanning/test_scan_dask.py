"""The same scan on a cluster, also when a worker is killed in the middle of it."""

from __future__ import annotations

import os
import signal
from typing import Any, Iterator

import numpy as np
import pytest
from label_files import BLOCKS, write

from mmguard.errors import CannotRun
from mmguard.formats.maps.folder import FolderSource
from mmguard.formats.maps.settings import MapSettings
from mmguard.formats.maps.source import scan_maps
from mmguard.scanning import processes
from mmguard.scanning.processes import DaskCluster

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
    with pytest.raises(ProcessLookupError):
        os.kill(killed[0], 0)


def test_a_scheduler_without_workers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, '_TIMEOUT', 0.2)
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None, silence_logs=50) as local:
        address = local.scheduler_address
        with pytest.raises(CannotRun, match=f'{address}.*dask worker {address}'):
            DaskCluster(address)
