"""The scan of label maps in object storage 20 ms away, beside fetching and decoding them and nothing else.

The server of S3 is moto's, behind a proxy that waits before each answer and remembers it: what is measured is the side
that asks. Needs s3fs and moto[server].
"""

from __future__ import annotations

import io
import multiprocessing
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Iterator, List, Tuple

import numpy as np
from mmguard.storage.files import forget_listings
from mmguard.storage.requests import AT_ONCE
from mmguard.storage.urls import enter
from PIL import Image

from benchmarks.scan import street
from benchmarks.timing import Row, interleaved
from mmguard.formats.maps.folder import FolderSource
from mmguard.formats.maps.record import Journal
from mmguard.formats.maps.settings import MapSettings
from mmguard.formats.maps.source import scan_maps
from mmguard.scanning.processes import PER_CORE, LocalProcesses, cores

FILES, DIFFERENT, SIDE = int(os.environ.get('STORAGE_FILES', 2000)), 20, 512
LATENCY = 0.02
LABELS = MapSettings(num_classes=19)
_TESTS = Path(__file__).parents[1] / 'tests' / 'tools' / 'storage'


def rows(device: str, rounds: int) -> List[Row]:
    with far_away() as (folder, port):
        lead_to(port)
        return _measured(folder, rounds)


def lead_to(port: int) -> None:
    """Requests for S3, of this process and of those that it starts."""
    from servers import environment

    os.environ.update(environment(port))


@contextmanager
def far_away() -> Iterator[Tuple[str, int]]:
    """The label maps on S3: a folder for other files, and the port that answers late."""
    sys.path.insert(0, str(_TESTS))
    from servers import s3_server, upload

    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        behind = stack.enter_context(s3_server())
        lead_to(behind)
        _write(Path(folder, 'labels'))
        upload(Path(folder, 'labels'), 's3://labels/all', behind)
        words = [sys.executable, str(_TESTS / 'slow_proxy.py'), str(behind), str(LATENCY)]
        proxy = stack.enter_context(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        stack.callback(proxy.kill)
        assert proxy.stdout is not None
        yield folder, int(proxy.stdout.readline())


def _write(root: Path) -> None:
    different = []
    for number in range(DIFFERENT):
        file = io.BytesIO()
        Image.fromarray(street(number)[:SIDE, :SIDE]).save(file, format='PNG')
        different.append(file.getvalue())
    root.mkdir()
    for number in range(FILES):
        (root / f'{number:05d}.png').write_bytes(different[number % DIFFERENT])


def _measured(folder: str, rounds: int) -> List[Row]:
    files = [f'labels/all/{number:05d}.png' for number in range(FILES)]
    processes = PER_CORE * cores()
    parts = [files[place::processes] for place in range(processes)]

    def scan() -> None:
        # Everything that the command does: listing, fetching, decoding, records, journal, tally.
        forget_listings()
        with Journal(os.path.join(folder, 'journal.jsonl'), resume=False) as journal:
            source = FolderSource(enter('s3://labels/all'), LABELS)
            done = scan_maps(source.items(), LABELS, LocalProcesses(cores()), journal)
        assert done.decoded == FILES
        assert not done.summary.to_facts().maps.unreadable

    def bare() -> None:
        # Dealt beforehand, nothing comes back: no way of sharing the work out is faster on this machine.
        running = [multiprocessing.get_context('fork').Process(target=_fetch, args=(part,)) for part in parts]
        for process in running:
            process.start()
        for process in running:
            process.join()
            assert process.exitcode == 0

    times = interleaved({'scan': scan, 'bare': bare}, max(3, rounds // 4))
    what = f'scan, {FILES:,} maps {SIDE}x{SIDE} on S3, {1000 * LATENCY:g} ms away / fetching and decoding'
    return [Row(what, times['scan'], times['bare'], 1.15)]


def _fetch(files: List[str]) -> None:
    import s3fs

    system = s3fs.S3FileSystem(config_kwargs={'max_pool_connections': 2 * AT_ONCE})
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for content in threads.map(system.cat_file, files):
            np.array(Image.open(io.BytesIO(content)))
