"""Mappers: one process per core on one machine, or dask.distributed workers on several."""

from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import zlib
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_one
from typing import Any, Dict, Iterable, Iterator, List, Optional

from mmguard.errors import CannotRun
from mmguard.formats.tasks import FAR, Mapper, Settings, scan_here
from mmguard.storage.files import FILES

#: Chunks in flight per process: one running, one waiting.
_AHEAD = 2
#: Processes per core if files are fetched: while one waits, another decodes.
PER_CORE = 2


def cores() -> int:
    """Return the number of cores available to this process."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def local_mapper(processes: Optional[int] = None) -> Mapper:
    """Return the mapper for this machine: by default one process per core, or none if one is enough."""
    number = processes or cores()
    return scan_here if number == 1 else LocalProcesses(number)


class LocalProcesses:
    """Runner of chunks in processes. A file that kills its process (a decoder, lack of memory) is reported as such."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def __call__(self, chunks: Iterable[List[Any]], settings: Settings) -> Iterator[Any]:
        source = iter(chunks)
        while True:
            broken: List[List[Any]] = []
            yield from self._until_broken(source, settings, broken)
            if not broken:
                return
            # It is not known which of the files in work it was: give each a process of its own.
            for chunk in broken:
                for item in chunk:
                    yield self._alone(item, settings)

    def _until_broken(self, source: Iterator[List[Any]], settings: Settings, broken: List[List[Any]]) -> Iterator[Any]:
        first = next(source, None)
        if first is None:
            return
        source = itertools.chain([first], source)
        processes = self.processes * (PER_CORE if settings.waits(first[0]) else 1)
        waiting: Dict[Future, List[Any]] = {}
        exhausted = False
        with _pool(processes) as pool:
            while True:
                while not exhausted and not broken and len(waiting) < _AHEAD * processes:
                    chunk = next(source, None)
                    if chunk is None:
                        exhausted = True
                    else:
                        try:
                            waiting[_submit(pool, chunk, settings)] = chunk
                        except BrokenProcessPool:
                            broken.append(chunk)
                if not waiting:
                    return
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    chunk = waiting.pop(future)
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        broken.append(chunk)
                        continue
                    yield result

    def _alone(self, item: Any, settings: Settings) -> Any:
        with _pool(1) as pool:
            try:
                return _submit(pool, [item], settings).result()
            except BrokenProcessPool:
                return settings.report_crash(item)


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    # A fork starts at once; a spawned interpreter would import torch first. The children use neither torch nor locks.
    context: Any = multiprocessing.get_context('fork' if sys.platform == 'linux' else None)
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_initialize_worker)
    try:
        yield pool
    except BaseException:
        # Kill the processes, since their results are not needed: after a second Ctrl-C they would wait forever, and
        # this process for them.
        with _delay_interrupts():
            for process in multiprocessing.active_children():
                if process not in others:
                    process.kill()
        raise
    finally:
        pool.shutdown(wait=True)


def _submit(pool: ProcessPoolExecutor, chunk: List[Any], settings: Settings) -> Future:
    with _delay_interrupts():  # Ctrl-C while the pool starts its processes would leave them running
        return pool.submit(settings.scan, chunk)


@contextmanager
def _delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C."""
    if not hasattr(signal, 'pthread_sigmask'):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _initialize_worker() -> None:
    """Initialize a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    # Garbage collection would touch, and so copy, all memory shared by the fork.
    gc.freeze()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process if its parent was killed; otherwise it would wait for files forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_one([parent.sentinel])
        os._exit(1)


#: Tasks in flight per thread of a worker: one running, one waiting.
_AHEAD_OF_WORKERS = 2
#: A task costs the scheduler about 3 ms: the more threads there are, the longer a task is.
_THREADS = 4
_TIMEOUT = 20
#: Seconds between two checks for workers; two in a row without any are reported.
_LOOK = 3.0


class DaskCluster:
    """Runner of chunks on the workers of a cluster, which see the files under the same paths: a shared disk, or URLs.

    The tasks of a killed worker run again elsewhere; a file that kills one worker after the other is reported as
    such. Results go to the client, whose journal is used to resume a scan.

    Raises:
        CannotRun: dask.distributed is not installed, or the scheduler has no worker.
        OSError: The scheduler does not answer.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
        except ImportError as error:
            raise CannotRun("--dask needs dask.distributed: pip install 'mmguard[dask]'") from error
        for name in ('distributed', 'distributed.client'):  # report a missing scheduler once, without tracebacks
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self.address = address
        self._client = Client(address, set_as_default=False, timeout=f'{_TIMEOUT}s')
        try:
            self._client.wait_for_workers(1, timeout=_TIMEOUT)
        except asyncio.TimeoutError as error:
            self.close()
            raise CannotRun(f'the scheduler {address} has no worker: start one with `dask worker {address}`') from error
        #: Factor for the duration of a task, relative to one machine.
        self.longer = max(FAR, self._threads() // _THREADS)

    def __call__(self, chunks: Iterable[List[Any]], settings: Settings) -> Iterator[Any]:
        from distributed import as_completed

        source = iter(chunks)
        at_work: Dict[Any, List[Any]] = {}
        suspects: List[Any] = []
        alone: List[Any] = []
        done = as_completed(loop=self._client.loop)

        def submit(some: Iterable[List[Any]]) -> None:
            for chunk in some:
                # Compressed: the scheduler unpickles what it forwards, and must not see credentials. Not pure: a file
                # may have changed since an earlier scan on this cluster.
                packed = zlib.compress(pickle.dumps((FILES, chunk, settings)), 1)
                (future,) = self._client.map(_scan_packed, [packed], pure=False)
                at_work[future.key] = chunk
                done.add(future)

        with _watched(self._client, self.address):
            submit(itertools.islice(source, _AHEAD_OF_WORKERS * self._threads()))
            for future in done:
                chunk = at_work.pop(future.key)
                try:
                    result: bytes = future.result()  # read again if its worker has died since
                except (Exception, asyncio.CancelledError) as error:
                    if type(error).__name__ != 'KilledWorker':
                        raise error if future.status == 'error' else self._gone() from error
                    if chunk is alone:
                        yield settings.report_crash(chunk[0])
                    else:  # a task that only waits on a worker is also blamed for its death
                        suspects += chunk
                else:
                    yield pickle.loads(zlib.decompress(result))
                # The journal has all yielded results by now. New workers may have joined.
                submit(itertools.islice(source, max(0, _AHEAD_OF_WORKERS * self._threads() - len(at_work))))
                if suspects and not at_work:  # the file is identified only if nothing else is in work
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
    """Read some files on a worker."""
    _, chunk, settings = pickle.loads(zlib.decompress(packed))
    return zlib.compress(pickle.dumps(settings.scan(chunk)), 1)


@contextmanager
def _watched(client: Any, address: str) -> Iterator[None]:
    """Report on standard error if no worker is left, since the scan waits for one."""
    over = threading.Event()

    def watch() -> None:
        looks = 0  # checks in a row without a worker
        while not over.wait(_LOOK):
            try:
                looks = 0 if client.nthreads() else looks + 1
            except Exception:  # without its scheduler the scan ends, and reports it
                return
            if looks == 2:
                print(
                    f'mmguard scan: {address} has no worker left, and the scan waits for one: `dask worker {address}` '
                    f'starts it. Ctrl-C ends the scan; results are kept, and --resume continues',
                    file=sys.stderr,
                    flush=True,
                )

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()
