"""Mapper that runs a scan in the workers of any ``concurrent.futures.Executor``, and the connection to dask."""

from __future__ import annotations

import logging
import os
import uuid
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from typing import Any, Dict, Iterable, Iterator, List, Optional

from mmguard.errors import CannotRun
from mmguard.formats.format import Task
from mmguard.scanning.processes import LocalProcesses, run_suspects

#: Chunks in flight. Executors do not tell their number of workers; with all chunks at once a million names take 1 GB.
AHEAD = 64
#: Seconds that a scheduler may take to answer.
_PATIENCE = 30


class AnyExecutor:
    """Runner of chunks in the workers of an executor, which the caller shuts down.

    Chunks whose worker died are run again in a process of this machine, file by file if it dies, too. If the executor
    starts no new workers, so are the chunks that are left.
    """

    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        # Part of every call: dask would return the result of an equal call before, though the files have changed.
        self.run = uuid.uuid4().hex

    def __call__(self, chunks: Iterable[List[Any]], settings: Task) -> Iterator[Any]:
        source = iter(chunks)
        waiting: Dict[Future, List[Any]] = {}
        suspects: List[List[Any]] = []
        looked, is_broken = False, False
        try:
            while not is_broken or waiting:
                while not is_broken and len(waiting) < AHEAD:
                    chunk = next(source, None)
                    if chunk is None:
                        break
                    try:
                        looked = looked or self._check_paths(chunk)
                        waiting[self.executor.submit(_run_chunk, self.run, settings, chunk)] = chunk
                    except (BrokenExecutor, RuntimeError):  # it takes no more
                        is_broken = True
                        suspects.append(chunk)
                if not waiting:
                    break
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    chunk = waiting.pop(future)
                    error = CancelledError() if future.cancelled() else future.exception()
                    if error is None:
                        yield future.result()
                    elif not _is_dead_worker(error):
                        raise _explain(error) from error
                    else:
                        suspects.append(chunk)
            if suspects:
                rest = 'the other files are' if is_broken else 'its files are'
                logging.getLogger('mmguard').warning(
                    'mmguard: a worker of the executor died; %s read on this machine, in one process', rest
                )
            for chunk in suspects:
                yield from run_suspects(chunk, settings)
            if is_broken:
                yield from LocalProcesses(1)(source, settings)
        finally:
            for future in waiting:
                future.cancel()

    def _check_paths(self, chunk: List[Any]) -> bool:
        """Return True if a worker sees a file of the chunk, False if this machine sees no file of it either.

        Raises:
            CannotRun: It does not.
        """
        path = next((item.path for item in chunk if os.path.exists(item.path)), None)
        if path is None:
            return False
        try:
            there, folder = self.executor.submit(_look_for, self.run, path).result()
        except Exception as error:
            if _is_dead_worker(error):
                raise BrokenExecutor from error
            raise _explain(error) from error
        if not there:
            raise CannotRun(
                f'{path} does not exist for a worker of the executor, which runs in {folder}. Workers need the same '
                'paths: keep the data on a file system that all machines mount, and name them by absolute paths'
            )
        return True


def _run_chunk(run: str, settings: Task, chunk: List[Any]) -> Any:
    return settings.scan(chunk)


def _look_for(run: str, path: str) -> Any:
    return os.path.exists(path), os.getcwd()


def _is_dead_worker(error: BaseException) -> bool:
    # dask's KilledWorker has no base class that is known without dask.
    return isinstance(error, (BrokenExecutor, CancelledError)) or type(error).__name__ == 'KilledWorker'


def _explain(error: BaseException) -> BaseException:
    if isinstance(error, ModuleNotFoundError):
        return CannotRun(
            f'a worker of the executor lacks a package: {error}. Install what is installed here there, too'
        )
    return error


@contextmanager
def connect_dask(address: Optional[str]) -> Iterator[Optional[Executor]]:
    """Connect to a dask scheduler, and yield its executor; ``None`` without an address.

    Raises:
        CannotRun: dask is missing, or no scheduler answers.
    """
    if address is None:
        yield None
        return
    try:
        from dask.distributed import Client
    except ImportError as error:
        raise CannotRun(f"--dask needs dask: pip install 'mmguard[dask]' ({error})") from error
    try:
        client = Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CannotRun(f'no dask scheduler answers at {address}: {error}. Start one with `dask scheduler`') from error
    with client:
        yield client.get_executor(pure=False)
