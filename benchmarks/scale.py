"""Figures for docs/storage.md: a worker's throughput, and a million records through a cluster of 99 workers.

For the throughput, label maps are on S3 as in ``storage``. For the million, the workers generate records, three
processes of 33 workers with two threads each; all else is real: the command, its listing of a million empty files, the
scheduler, the journal, the tree. Needs dask.distributed, s3fs and moto[server]. SCALE_RECORDS=50000 STORAGE_FILES=400
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import List, NamedTuple

from mmguard.storage.files import forget_listings
from mmguard.storage.urls import enter

from benchmarks.relay import Relay
from benchmarks.storage import FILES, LABELS, SIDE, far_away, lead_to
from benchmarks.timing import Row, interleaved
from mmguard.formats.maps.folder import FolderSource
from mmguard.formats.maps.record import Journal
from mmguard.formats.maps.source import scan_maps
from mmguard.formats.tasks import Mapper
from mmguard.scanning.processes import DaskCluster, LocalProcesses, cores

RECORDS = int(os.environ.get('SCALE_RECORDS', 1_000_000))
PROCESSES, WORKERS = 3, 33
MOST = 300  # MiB
#: Seconds between two looks at a process: of its last moment nothing is seen.
_LOOK = 0.1
_TESTS = Path(__file__).parents[1] / 'tests' / 'tools' / 'storage'


class Used(NamedTuple):
    """By a process, from its beginning to its end.

    Attributes:
        seconds (float): Of a core.
        peak (float): Memory, MiB.
    """

    seconds: float
    peak: float


def rows(device: str, rounds: int) -> List[Row]:
    sys.path.insert(0, str(_TESTS))
    return _throughput(rounds) + _records()


def _throughput(rounds: int) -> List[Row]:
    """Of label maps that are fetched and decoded."""
    from local_cluster import cluster

    with far_away() as (folder, port), Relay(f'tcp://127.0.0.1:{port}') as relay:
        lead_to(int(relay.address.rpartition(':')[2]))
        with cluster(cores()) as started:
            mapper = DaskCluster(started.address)

            def scan(mapper: Mapper) -> None:
                forget_listings()
                with Journal(os.path.join(folder, 'journal.jsonl'), resume=False) as journal:
                    done = scan_maps(FolderSource(enter('s3://labels/all'), LABELS).items(), LABELS, mapper, journal)
                assert done.decoded == FILES

            def on_workers() -> float:
                return sum(_used(worker.pid).seconds for worker in started.workers)

            scan(mapper)  # connections, imports
            before, received = on_workers(), relay.received
            scan(mapper)
            core = (on_workers() - before) / FILES
            network = (relay.received - received) / FILES
            forget_listings()
            start = time.process_time()
            assert sum(1 for _ in FolderSource(enter('s3://labels/all'), LABELS).items()) == FILES
            listed = (time.process_time() - start) / FILES
            calls = {'workers': lambda: scan(mapper), 'processes': lambda: scan(LocalProcesses(cores()))}
            times = interleaved(calls, max(3, rounds // 4))
            mapper.close()
        size = sum(path.stat().st_size for path in Path(folder, 'labels').iterdir()) / FILES
    what = f'{FILES:,} maps {SIDE}x{SIDE} on S3'
    return [
        Row(f'{what}, {cores()} workers / {cores()} processes, time', times['workers'], times['processes'], None),
        Row('worker, core time per map that it fetches and decodes', 1e3 * core, None, None),
        Row('S3 to workers, per map / its file', network, size, None, 'bytes'),
        Row('client, core time per name that it lists on S3', 1e6 * listed, None, None, 'us'),
    ]


def _records() -> List[Row]:
    from local_cluster import GENERATED, Process, cluster

    with tempfile.TemporaryDirectory() as folder, cluster(0) as started:
        for _ in range(PROCESSES):
            started.workers.append(Process([GENERATED, started.address, str(WORKERS)], '(Registered to)'))
        _write(Path(folder, 'labels'))
        before = _used(started.scheduler.pid)
        with Relay(started.address) as relay:
            client = _scan(folder, relay.address)
        scheduler = _used(started.scheduler.pid)
        again = _scan(folder, started.address, '--resume')
        journal = os.path.getsize(os.path.join(folder, 'journal.jsonl'))
    what = f'{RECORDS:,} records on {PROCESSES * WORKERS} workers'
    million, micro = RECORDS / 1e6, 1e6 / RECORDS
    return [
        Row(f'{what}, memory of the scheduler, MiB', scheduler.peak, None, MOST, 'MiB'),
        Row(f'{what}, memory of the client, MiB', client.peak, None, MOST, 'MiB'),
        Row('the same, resumed, memory of the client, MiB', again.peak, None, MOST, 'MiB'),
        Row('scheduler, core time per record', (scheduler.seconds - before.seconds) * micro, None, None, 'us'),
        Row('client, core time per record', client.seconds * micro, None, None, 'us'),
        Row('client, core time per record that is known, resumed', again.seconds * micro, None, None, 'us'),
        Row('client to scheduler, per record', relay.sent / million / 1e6, None, None, 'bytes'),
        Row('scheduler to client, per record', relay.received / million / 1e6, None, None, 'bytes'),
        Row('journal, per record', journal / RECORDS, None, None, 'bytes'),
    ]


def _write(root: Path) -> None:
    for number in range(RECORDS):
        folder = root / f'{number // 1000:04d}'
        if number % 1000 == 0:
            folder.mkdir(parents=True)
        os.mknod(folder / f'{number:07d}.png')


def _scan(folder: str, address: str, *more: str) -> Used:
    """The command, in a process of its own."""
    out = os.path.join(folder, 'scan.json')
    words = ['scan', os.path.join(folder, 'labels'), '--num-classes', '19', '--dask', address, '--json', out]
    words += ['--journal', os.path.join(folder, 'journal.jsonl'), *more]
    process = subprocess.Popen([sys.executable, '-m', 'mmguard.cli', *words], stdout=subprocess.DEVNULL)
    used = Used(0, 0)
    while process.poll() is None:
        now = _used(process.pid)
        used = now if now.peak else used
        time.sleep(_LOOK)
    assert process.returncode == 1, 'invalid values were generated'
    (found,) = json.loads(Path(out).read_text())['datasets']
    assert (found['decoded'], found['reused']) == ((0, RECORDS) if more else (RECORDS, 0))
    assert found['facts']['files'] == RECORDS
    return used


def _used(pid: int) -> Used:
    """So far; without memory where it has ended. What ``wait4`` says would hold the memory of this process, too."""
    ticks = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    peak = re.search(r'VmHWM:\s+(\d+) kB', Path(f'/proc/{pid}/status').read_text())
    return Used((int(ticks[11]) + int(ticks[12])) / os.sysconf('SC_CLK_TCK'), int(peak[1]) / 1024 if peak else 0.0)
