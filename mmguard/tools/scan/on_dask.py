"""The mapper of several machines: dask.distributed."""

from __future__ import annotations

import asyncio
import itertools
import logging
import pickle
import sys
import threading
import zlib
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List

from mmguard.errors import CannotRun
from mmguard.tools.scan.chunks import FAR
from mmguard.tools.scan.engine import ChunkResult, scan_chunk
from mmguard.tools.scan.processes import crashed
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.storage.files import FILES

#: Tasks on the way per thread of a worker: one in work, one waiting.
_AHEAD = 2
#: A task costs the scheduler 3 ms or so: the more threads there are, the longer it is.
_THREADS = 4
_SECONDS = 20
#: Seconds between two looks for workers: where two in a row find none, that is said.
_LOOK = 3.0


class DaskCluster:
    """Runs chunks on the workers of a cluster, which see the files under the same paths: of a shared disk, or URLs.

    What a killed worker had in work runs again elsewhere; a file that kills one worker after the other is reported as
    such. Results go to the client, whose journal is what a scan is resumed from.

    Args:
        address (str): Of the scheduler, ``'tcp://10.0.0.1:8786'``.

    Attributes:
        longer (int): So many times as long as on one machine are tasks.

    Raises:
        CannotRun: dask.distributed is not installed, or the scheduler has no worker.
        OSError: No scheduler answers.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise CannotRun("--dask needs dask.distributed: pip install 'mmguard[dask]'") from error
        for name in ('distributed', 'distributed.client'):  # a scheduler that is gone is said once, without tracebacks
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.address = address
        self._client = Client(address, set_as_default=False, timeout=f'{_SECONDS}s')
        try:
            self._client.wait_for_workers(1, timeout=_SECONDS)
        except asyncio.TimeoutError as error:
            self.close()
            raise CannotRun(f'the scheduler {address} has no worker: dask worker {address}') from error
        self.longer = max(FAR, self._threads() // _THREADS)

    def __call__(self, chunks: Iterable[List[MapItem]], settings: MapSettings) -> Iterator[ChunkResult]:
        from distributed import as_completed

        source = iter(chunks)
        at_work: Dict[Any, List[MapItem]] = {}
        suspects: List[MapItem] = []
        alone: List[MapItem] = []
        done = as_completed(loop=self._client.loop)

        def submit(some: Iterable[List[MapItem]]) -> None:
            for chunk in some:
                # Packed: the scheduler unpickles what it passes on, and credentials are none of its business. Not
                # pure: a file may have changed since an earlier scan on this cluster.
                packed = zlib.compress(pickle.dumps((FILES, chunk, settings)), 1)
                (future,) = self._client.map(_scan_packed, [packed], pure=False)
                at_work[future.key] = chunk
                done.add(future)

        with _watched(self._client, self.address):
            submit(itertools.islice(source, _AHEAD * self._threads()))
            for future in done:
                chunk = at_work.pop(future.key)
                try:
                    result: bytes = future.result()  # read again where its worker has died with it since
                except (Exception, asyncio.CancelledError) as error:
                    if type(error).__name__ != 'KilledWorker':
                        raise error if future.status == 'error' else self._gone() from error
                    if chunk is alone:
                        yield crashed(chunk[0], settings)
                    else:  # a task that only waits on a worker is blamed for its death, too
                        suspects += chunk
                else:
                    yield pickle.loads(zlib.decompress(result))
                # By now the journal has what was yielded. Workers may have come.
                submit(itertools.islice(source, max(0, _AHEAD * self._threads() - len(at_work))))
                if suspects and not at_work:  # which of the files it was is known if nothing else is in work
                    alone = [suspects.pop()]
                    submit([alone])

    def _threads(self) -> int:
        try:
            return max(1, sum(self._client.nthreads().values()))
        except (Exception, asyncio.CancelledError) as error:
            raise self._gone() from error

    def _gone(self) -> CannotRun:
        return CannotRun(
            f'the scheduler {self.address} does not answer any more. What was read is kept: start a scheduler and '
            f'workers, and the same command with --resume goes on'
        )

    def close(self) -> None:
        self._client.close(timeout=1)


def _scan_packed(packed: bytes) -> bytes:
    """Read some files, on a worker."""
    _, chunk, settings = pickle.loads(zlib.decompress(packed))
    return zlib.compress(pickle.dumps(scan_chunk(chunk, settings)), 1)


@contextmanager
def _watched(client: Any, address: str) -> Iterator[None]:
    """Say on standard error when no worker is left, for which a scan waits."""
    over = threading.Event()

    def watch() -> None:
        looks = 0  # in a row without a worker
        while not over.wait(_LOOK):
            try:
                looks = 0 if client.nthreads() else looks + 1
            except Exception:  # without its scheduler the scan ends, and says so itself
                return
            if looks == 2:
                print(
                    f'mmguard scan: {address} has no worker left, and the scan waits for one: dask worker {address}. '
                    f'Ctrl-C ends it; what was read is kept, and --resume goes on',
                    file=sys.stderr,
                    flush=True,
                )

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()
