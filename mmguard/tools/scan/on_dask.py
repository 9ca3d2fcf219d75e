"""The mapper of several machines: dask.distributed."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import pickle
import sys
import threading
import uuid
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set

from mmguard.errors import CannotRun
from mmguard.tools.scan.chunks import FAR
from mmguard.tools.scan.engine import ChunkResult
from mmguard.tools.scan.on_worker import Group, Part, Returned, handed_over, scan_and_hold, taken, together, unpacked
from mmguard.tools.scan.processes import crashed
from mmguard.tools.scan.record import MapItem, MapRecord
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.scan.summary import MapSummary

#: Tasks on the way per thread of a worker: one in work, one waiting.
_AHEAD = 2
#: A task costs the scheduler 3 ms or so: the more threads there are, the longer it is.
_THREADS = 4
#: Records of a group, in bytes as they come: they are held until its sums are added up.
_GROUP = 4 << 20
#: Parts that a node of the tree adds up.
_FAN_IN = 8
#: Not pure: each runs once. Before tasks that read.
_NEXT = {'pure': False, 'priority': 1}
_SECONDS = 20
#: Seconds between two looks for workers: where two in a row find none, that is said, and one is looked for more often.
_LOOK, _LOOK_WAITING = 3.0, 0.2
#: What dask raises, with whatever is asked, once its scheduler is gone.
_GONE = (OSError, concurrent.futures.CancelledError, asyncio.CancelledError)


class DaskCluster:
    """Runs chunks on the workers of a cluster, which see the files under the same paths: of a shared disk, or URLs.

    A worker that dies costs the chunks it had in work, which run again elsewhere. A file that kills one worker after
    the other is reported as such.

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
        self.name = uuid.uuid4().hex
        self._journal = self.name
        self._groups = itertools.count()
        self._client = Client(address, set_as_default=False, timeout=f'{_SECONDS}s')
        try:
            self._client.wait_for_workers(1, timeout=_SECONDS)
        except asyncio.TimeoutError as error:
            self.close()
            raise CannotRun(f'the scheduler {address} has no worker: dask worker {address}') from error
        self.longer = max(FAR, _threads(self._client) // _THREADS)

    def goes_on_with(self, journal: str) -> List[str]:
        """Takes a scan over from a client that was ended; returns the records that are in no journal yet.

        Args:
            journal (str): The name of its journal.
        """
        self._journal = journal
        held = self._client.run(handed_over, journal, self.name)
        return [line for every in held.values() for packed in every for line in unpacked(packed)]

    def __call__(self, chunks: Iterable[List[MapItem]], settings: MapSettings) -> Iterator[ChunkResult]:
        try:
            with _watched(self._client, self.address):
                yield from _Run(self._client, settings, self._next_group).results(chunks)
        except _Gone as error:
            raise CannotRun(
                f'the scheduler {self.address} does not answer any more. What was read is kept: start a scheduler and '
                f'workers, and the same command with --resume goes on'
            ) from error

    def _next_group(self) -> Group:
        return Group(self._journal, self.name, next(self._groups))

    def close(self) -> None:
        self._client.close(timeout=1)


@dataclass
class _Tasks:
    """The tasks of a group.

    Args:
        group (Group): As the workers know it.
        waiting (int): Tasks whose records have not come.
        packed (dict[int, bytes]): Task -> its records: where a worker dies with its sums, they are added up here.
        size (int): Bytes of all of these.
        split (set[int]): Tasks that were given up, their files being tasks of their own.
        workers (set[str]): Those that hold its sums.
    """

    group: Group
    waiting: int = 0
    packed: Dict[int, bytes] = field(default_factory=dict)
    size: int = 0
    split: Set[int] = field(default_factory=set)
    workers: Set[str] = field(default_factory=set)


class _Task(NamedTuple):
    number: int
    items: List[MapItem]
    tasks: _Tasks


class _Run:
    """One data set on a cluster."""

    def __init__(self, client: Any, settings: MapSettings, next_group: Callable[[], Group]) -> None:
        from distributed import as_completed

        self._client, self._settings, self._next_group = client, settings, next_group
        self._at_work: Dict[str, _Task] = {}
        self._trees: Dict[str, _Tasks] = {}
        self._numbers = itertools.count()
        self._open = _Tasks(next_group())
        self._exhausted = False
        self._most = 1
        self._done = as_completed(loop=client.loop)

    def results(self, chunks: Iterable[List[MapItem]]) -> Iterator[ChunkResult]:
        source = iter(chunks)
        self._fill(source)
        # Futures are added while these are gone through.
        for batch in self._done.batches():
            if any(future.status not in ('finished', 'error') for future in batch):
                raise _Gone
            finished = {future.key: future for future in batch if future.status == 'finished'}
            with _answers():
                came = self._client.gather(finished, errors='skip')
            for future in batch:
                if future.key in self._trees:
                    yield from self._added_up(self._trees.pop(future.key), came.get(future.key, Part()))
                    continue
                task = self._at_work.pop(future.key)
                if future.key in came:
                    yield self._received(task, came[future.key])
                else:
                    yield from self._failed(task, future.exception())
                # By now the journal has what was yielded.
                task.tasks.waiting -= 1
                self._fill(source)
                self._add_up(task.tasks)

    def _fill(self, source: Iterator[List[MapItem]]) -> None:
        while not self._exhausted and len(self._at_work) < self._most:
            if not self._open.packed:  # workers may have come since the last group
                self._most = _AHEAD * _threads(self._client)
            chunk = next(source, None)
            if chunk is None:
                self._exhausted = True
            else:
                self._submit(chunk)

    def _submit(self, chunk: List[MapItem]) -> None:
        if self._open.size >= _GROUP:
            self._open = _Tasks(self._next_group())
        task = _Task(next(self._numbers), chunk, self._open)
        task.tasks.waiting += 1
        # Not pure: the same file may have changed since an earlier scan on this cluster.
        # Packed: the scheduler unpickles what it passes on, and would keep it for a while as thousands of objects.
        arguments = (zlib.compress(pickle.dumps((chunk, self._settings)), 1), task.tasks.group, task.number)
        with _answers():
            future = self._client.submit(scan_and_hold, *arguments, pure=False)
        self._at_work[future.key] = task
        self._done.add(future)

    def _received(self, task: _Task, returned: Optional[Returned]) -> ChunkResult:
        if returned is None:
            raise CannotRun('another scan goes on with its journal: this one ends')
        task.tasks.packed[task.number] = returned.packed
        task.tasks.size += len(returned.packed)
        task.tasks.workers.add(returned.worker)
        result: ChunkResult = returned.result
        return result._replace(lines=unpacked(returned.packed)) if returned.packed else result

    def _failed(self, task: _Task, error: BaseException) -> Iterator[ChunkResult]:
        if type(error).__name__ != 'KilledWorker':
            raise error
        task.tasks.split.add(task.number)
        if len(task.items) == 1:
            yield crashed(task.items[0], self._settings)
        for item in task.items if len(task.items) > 1 else ():
            self._submit([item])

    def _add_up(self, tasks: _Tasks) -> None:
        """Begins the tree of a group whose records have all come."""
        if tasks.waiting or not tasks.size or (tasks is self._open and not self._exhausted):
            return
        if tasks is self._open:  # files of tasks that are given up may follow
            self._open = _Tasks(self._next_group())
        split = frozenset(tasks.split)
        with _answers():
            parts = [
                self._client.submit(taken, tasks.group, split, workers=[worker], allow_other_workers=True, **_NEXT)
                for worker in sorted(tasks.workers)
            ]
            while len(parts) > 1:
                nodes = [parts[first : first + _FAN_IN] for first in range(0, len(parts), _FAN_IN)]
                parts = [self._client.submit(together, node, **_NEXT) for node in nodes]
        self._trees[parts[0].key] = tasks
        self._done.add(parts[0])

    def _added_up(self, tasks: _Tasks, root: Part) -> Iterator[ChunkResult]:
        """The sums of a group, and those of tasks whose worker died with theirs."""
        if not isinstance(self._settings, MapSettings):  # cases of volumes are added up from their records
            return
        if root.summary is not None:
            yield ChunkResult([], root.summary)
        rest = MapSummary(self._settings)
        for number in tasks.packed.keys() - root.tasks:
            for line in unpacked(tasks.packed[number]):
                rest.add(MapRecord.from_line(line))
        if rest.files:
            yield ChunkResult([], rest)


@contextmanager
def _watched(client: Any, address: str) -> Iterator[None]:
    """Says on standard error when no worker is left, for which a scan waits, and when one is back."""
    over = threading.Event()

    def watch() -> None:
        looks = 0  # in a row without a worker
        while not over.wait(_LOOK if looks < 2 else _LOOK_WAITING):
            try:
                is_there = bool(client.nthreads())
            except Exception:  # without its scheduler the scan ends, and says so itself
                return
            if is_there and looks > 1:
                print('mmguard scan: a worker is back, the scan goes on', file=sys.stderr, flush=True)
            looks = 0 if is_there else looks + 1
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


class _Gone(Exception):
    """The scheduler does not answer any more."""


@contextmanager
def _answers() -> Iterator[None]:
    try:
        yield
    except _GONE as error:
        raise _Gone from error


def _threads(client: Any) -> int:
    """Of all workers."""
    with _answers():
        return max(1, sum(client.nthreads().values()))
