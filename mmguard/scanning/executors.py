"""Mappers that run a scan in processes of this machine, or in the workers of an executor such as dask's."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import signal
import sys
import threading
import uuid
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import wait as wait_for_one
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from mmguard.errors import CannotRun
from mmguard.formats.format import Task, scan_here

#: Maximum number of submitted chunks per process: one running, one waiting.
_AHEAD = 2


def count_cores() -> int:
    """Return the number of cores available to this process."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def scan_in_processes(chunks: Iterable[List[Any]], settings: Task, processes: Optional[int] = None) -> Iterator[Any]:
    """Scan chunks of files in this number of processes (default: one per core); 1 means this process."""
    number = processes or count_cores()
    return scan_here(chunks, settings) if number == 1 else LocalProcesses(number)(chunks, settings)


class LocalProcesses:
    """Mapper that scans chunks of files in local processes, and reports a file that crashes its process."""

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def __call__(self, chunks: Iterable[List[Any]], settings: Task) -> Iterator[Any]:
        source = iter(chunks)
        while True:
            broken: List[List[Any]] = []
            yield from self._run_until_broken(source, settings, broken)
            if not broken:
                return
            for chunk in broken:
                yield from run_suspects(chunk, settings)

    def _run_until_broken(self, source: Iterator[List[Any]], settings: Task, broken: List[List[Any]]) -> Iterator[Any]:
        with _pool(self.processes) as pool:
            submit = partial(_submit, pool, settings)
            for chunk, future in run_ahead(submit, source, _AHEAD * self.processes, broken):
                try:
                    result = future.result()
                except BrokenProcessPool:
                    broken.append(chunk)
                    continue
                yield result


def run_ahead(
    submit: Callable[[List[Any]], Future], source: Iterator[List[Any]], ahead: int, broken: List[List[Any]]
) -> Iterator[Tuple[List[Any], Future]]:
    """Start chunks, at most ``ahead`` at once, and yield each chunk with its future when the future is done.

    No chunk is started once ``broken`` contains a chunk that ``submit`` refused or that the caller has added.
    """
    waiting: Dict[Future, List[Any]] = {}
    try:
        while True:
            while not broken and len(waiting) < ahead:
                chunk = next(source, None)
                if chunk is None:
                    break
                try:
                    waiting[submit(chunk)] = chunk
                except RuntimeError:  # a pool that is broken or shut down
                    broken.append(chunk)
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future
    finally:
        for future in waiting:
            future.cancel()


def run_suspects(chunk: List[Any], settings: Task) -> Iterator[Any]:
    """Run a chunk again after a crash: in a process of its own, or file by file if this process crashes, too.

    Files are scanned one after the other: in a parallel pool, one crash would also break the scans of other files.
    """
    try:
        with _pool(1) as pool:
            found = _submit(pool, settings, chunk).result()
    except BrokenProcessPool:
        if len(chunk) == 1:
            yield settings.report_crash(chunk[0])
        else:
            for item in chunk:
                yield from run_suspects([item], settings)
    else:
        yield found


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


def _submit(pool: ProcessPoolExecutor, settings: Task, chunk: List[Any]) -> Future:
    with _delay_interrupts():  # Ctrl-C while the pool starts its processes would leave them running
        return pool.submit(settings.scan, chunk)


@contextmanager
def _delay_interrupts() -> Iterator[None]:
    """Delay Ctrl-C (SIGINT) until the context ends."""
    if not hasattr(signal, 'pthread_sigmask'):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _initialize_worker() -> None:
    """Make a worker process ignore Ctrl-C, share memory with its parent, and end when the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles it
    # Garbage collection would touch, and so copy, all memory shared by the fork.
    gc.freeze()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this process if its parent was killed, because otherwise this process would wait for files forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_one([parent.sentinel])
        os._exit(1)


#: Maximum number of submitted chunks, since executors do not report their workers; a million files would take 1 GB.
AHEAD = 64
#: Seconds that a scheduler may take to answer.
_PATIENCE = 30


class AnyExecutor:
    """Mapper that scans chunks of files in the workers of an executor, which the caller shuts down.

    A chunk whose worker crashed is run again in a local process, or file by file if this process crashes, too. If the
    executor does not start new workers, all remaining chunks run locally.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        # Unique argument of every call: dask would return the result of an earlier equal call, even for changed files.
        self.run = uuid.uuid4().hex
        self._looked_for = ''

    def __call__(self, chunks: Iterable[List[Any]], settings: Task) -> Iterator[Any]:
        source, self._looked_for = iter(chunks), ''
        killed: List[List[Any]] = []
        broken: List[List[Any]] = []
        for chunk, future in run_ahead(lambda chunk: self._submit(chunk, settings), source, AHEAD, broken):
            try:
                result = future.result()
            except ModuleNotFoundError as error:
                message = f'a worker of the executor lacks a package: {error}. Install it there, as on this machine'
                raise CannotRun(message) from error
            except BrokenExecutor:
                broken.append(chunk)
            except Exception as error:
                # dask's KilledWorker has no base class that is known without dask.
                if not isinstance(error, CancelledError) and type(error).__name__ != 'KilledWorker':
                    raise
                killed.append(chunk)
            else:
                yield result
        if killed or broken:
            rest = 'the other files are' if broken else 'its files are'
            logging.getLogger('mmguard').warning(
                'mmguard: a worker of the executor died; %s read on this machine, in one process', rest
            )
        for chunk in killed + broken:
            yield from run_suspects(chunk, settings)
        if broken:
            yield from LocalProcesses(1)(source, settings)

    def _submit(self, chunk: List[Any], settings: Task) -> Future:
        """Start a chunk in a worker; the first chunk's worker also checks that a file of this machine exists there."""
        path = '' if self._looked_for else next((item.path for item in chunk if os.path.exists(item.path)), '')
        self._looked_for = self._looked_for or path
        return self.executor.submit(_run_chunk, self.run, settings, chunk, path)


def _run_chunk(run: str, settings: Task, chunk: List[Any], path: str) -> Any:
    if path and not os.path.exists(path):
        raise CannotRun(
            f'{path} does not exist for a worker of the executor, which runs in {os.getcwd()}. Workers need the same '
            'paths: keep the data on a file system that all machines mount, and use absolute paths'
        )
    return settings.scan(chunk)


@contextmanager
def connect_dask(address: str) -> Iterator[AnyExecutor]:
    """Connect to a dask scheduler, and yield a mapper for its workers.

    Raises:
        CannotRun: dask is missing, or no scheduler answers.
    """
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise CannotRun(f"--dask needs dask: pip install 'mmguard[dask]' ({error})") from error
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CannotRun(f'no dask scheduler answers at {address}: {error}. Start one with `dask scheduler`') from error
    with client:
        yield AnyExecutor(client.get_executor(pure=False))
