"""The mapper of one machine: a process per core."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import signal
import sys
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for_one
from typing import Any, Dict, Iterable, Iterator, List

from mmguard.tools.scan.engine import ChunkResult, scan_chunk
from mmguard.tools.scan.faults import CRASHES
from mmguard.tools.scan.fetched import is_far, stamped
from mmguard.tools.scan.record import MapItem, MapRecord
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.summary import MapSummary

#: Chunks on the way per process: one in work, one waiting.
_AHEAD = 2
#: Processes per core where files are fetched: while one waits, another decodes.
FAR = 2


def cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


class LocalProcesses:
    """Runs chunks in processes. A file that kills its process (a bug of a decoder, lack of memory) is reported as such.

    Args:
        processes (int): How many.
    """

    def __init__(self, processes: int) -> None:
        self.processes = processes

    def __call__(self, chunks: Iterable[List[MapItem]], settings: MapSettings) -> Iterator[ChunkResult]:
        source = iter(chunks)
        while True:
            broken: List[List[MapItem]] = []
            yield from self._until_broken(source, settings, broken)
            if not broken:
                return
            # Which of the files in work it was is not known: each gets a process of its own.
            for chunk in broken:
                for item in chunk:
                    yield self._alone(item, settings)

    def _until_broken(
        self, source: Iterator[List[MapItem]], settings: MapSettings, broken: List[List[MapItem]]
    ) -> Iterator[ChunkResult]:
        first = next(source, None)
        if first is None:
            return
        source = itertools.chain([first], source)
        processes = self.processes * (FAR if isinstance(settings, MapSettings) and is_far(first[0], settings) else 1)
        waiting: Dict[Future, List[MapItem]] = {}
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

    def _alone(self, item: MapItem, settings: MapSettings) -> ChunkResult:
        with _pool(1) as pool:
            try:
                return _submit(pool, [item], settings).result()
            except BrokenProcessPool:
                return crashed(item, settings)


def crashed(item: MapItem, settings: MapSettings) -> ChunkResult:
    """The record of a file that ended the process that read it."""
    if not isinstance(settings, MapSettings):  # cases of volumes, as in the engine
        return settings.crashed(item)
    (known,) = stamped([item], settings)
    record = MapRecord(item.path, known.stamp, item.image, known.image_stamp, settings.backend, fault=CRASHES)
    summary = MapSummary(settings)
    summary.add(record)
    return ChunkResult([record.to_line()], summary)


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    # A fork starts at once; a fresh interpreter would import torch first. The children touch neither torch nor locks.
    context: Any = multiprocessing.get_context('fork' if sys.platform == 'linux' else None)
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=_settle_in)
    try:
        yield pool
    except BaseException:
        # Nobody waits for what is in work. Left to end by themselves, the processes would wait for ever, and this one
        # for them, after a second Ctrl-C.
        with _uninterrupted():
            for process in multiprocessing.active_children():
                if process not in others:
                    process.kill()
        raise
    finally:
        pool.shutdown(wait=True)


def _submit(pool: ProcessPoolExecutor, chunk: List[MapItem], settings: MapSettings) -> Future:
    with _uninterrupted():  # a pool that Ctrl-C meets while it starts its processes never ends them
        return pool.submit(scan_chunk, chunk, settings)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits."""
    if not hasattr(signal, 'pthread_sigmask'):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _settle_in() -> None:
    """The first thing in each process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent takes it
    # Garbage collection would go through, and with that copy, all that was forked.
    gc.freeze()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process where the parent was killed: it would wait for files for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_one([parent.sentinel])
        os._exit(1)
