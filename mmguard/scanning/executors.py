"""Mapper that runs a scan in the workers of any ``concurrent.futures.Executor``, and the connection to dask."""

from __future__ import annotations

import logging
import os
import uuid
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager
from typing import Any, Iterable, Iterator, List, Optional

from mmguard.errors import CannotRun
from mmguard.formats.format import Task
from mmguard.scanning.processes import LocalProcesses, run_ahead, run_suspects

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
        self._looked_for = ''

    def __call__(self, chunks: Iterable[List[Any]], settings: Task) -> Iterator[Any]:
        source, self._looked_for = iter(chunks), ''
        killed: List[List[Any]] = []
        broken: List[List[Any]] = []
        for chunk, future in run_ahead(lambda chunk: self._submit(chunk, settings), source, AHEAD, broken):
            try:
                result = future.result()
            except ModuleNotFoundError as error:
                message = (
                    f'a worker of the executor lacks a package: {error}. Install what is installed here there, too'
                )
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
        """Start a chunk in a worker; the first with a file that exists here looks for it there, too."""
        path = '' if self._looked_for else next((item.path for item in chunk if os.path.exists(item.path)), '')
        self._looked_for = self._looked_for or path
        return self.executor.submit(_run_chunk, self.run, settings, chunk, path)


def _run_chunk(run: str, settings: Task, chunk: List[Any], path: str) -> Any:
    if path and not os.path.exists(path):
        raise CannotRun(
            f'{path} does not exist for a worker of the executor, which runs in {os.getcwd()}. Workers need the same '
            'paths: keep the data on a file system that all machines mount, and name them by absolute paths'
        )
    return settings.scan(chunk)


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
