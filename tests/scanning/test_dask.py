"""A scan in the workers of a dask cluster."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest
from executor_cases import KINDS, Scan, write_sets
from format_cases import encode
from label_files import BLOCKS

from mmguard.cli import main

distributed = pytest.importorskip('dask.distributed')


@pytest.fixture(scope='module')
def scans(tmp_path_factory: pytest.TempPathFactory) -> Dict[str, Scan]:
    return write_sets(tmp_path_factory.mktemp('sets'))


@pytest.fixture(scope='module')
def client() -> Iterator[Any]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.parametrize('kind', KINDS)
def test_the_same_json(scans: Dict[str, Scan], client: Any, kind: str) -> None:
    expected = scans[kind](processes=1)
    assert scans[kind](executor=client.get_executor()) == expected


def test_the_same_json_of_cases_of_nnunet(tmp_path: Path, client: Any) -> None:
    pytest.importorskip('nibabel')
    scan = write_sets(tmp_path, ('nnunet',))['nnunet']
    assert scan(executor=client.get_executor()) == scan(processes=1)


def test_a_killed_worker_loses_nothing(scans: Dict[str, Scan], client: Any) -> None:
    expected = scans['maps'](processes=1)
    executor = client.get_executor()
    submit, calls = executor.submit, []

    def submit_and_kill(*args: Any) -> Any:
        calls.append(args)
        future = submit(*args)
        if len(calls) == 6:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return future

    executor.submit = submit_and_kill
    assert scans['maps'](executor=executor) == expected
    assert len(calls) > 6
    client.wait_for_workers(2)


def test_the_command(scans: Dict[str, Scan], client: Any, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for number in range(5):
        (tmp_path / f'{number}.png').write_bytes(encode(BLOCKS))
    reported = []
    for how in (('--dask', client.scheduler.address), ('--processes', '1')):
        assert main(['scan', str(tmp_path), '--num-classes', '3', '--json', '-', *how]) == 1
        reported.append(json.loads(capsys.readouterr().out))
    assert reported[0] == reported[1]


def test_no_scheduler(tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('mmguard.scanning.executors._PATIENCE', 1)
    (tmp_path / 'a.png').write_bytes(b'')
    assert main(['scan', str(tmp_path), '--dask', 'localhost:9']) == 2
    assert 'no dask scheduler answers at localhost:9' in capsys.readouterr().err
