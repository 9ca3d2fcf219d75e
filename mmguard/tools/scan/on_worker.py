"""What a worker of a cluster does for a scan, and what it holds until the client has it.

Records go to the client, which writes them to its journal. Sums stay with the worker: those of a group of tasks are
added up there, and in a tree over the workers once the client has the records of the group. Until then the worker holds
the records, too, so that of a client that was killed nothing has to be read again.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional

from mmguard.tools.scan.engine import ChunkResult, scan_chunk
from mmguard.tools.scan.summary import MapSummary

_POLL = 0.05


class Group(NamedTuple):
    """Tasks whose sums are added up together.

    Attributes:
        journal (str): The name of the client's journal: the same for a scan and for the one that resumes it.
        client (str): Who asked, different for each of both.
        number (int): Of the client's groups.
    """

    journal: str
    client: str
    number: int


class Returned(NamedTuple):
    """What a task gives to the client.

    Attributes:
        worker (str): The address of the worker that holds the sums.
        result (ChunkResult): Without records and sums.
        packed (bytes): The records, see :func:`unpacked`.
    """

    worker: str
    result: Any
    packed: bytes


class Part(NamedTuple):
    """Some tasks of a group, added up.

    Attributes:
        tasks (frozenset[int]): Their numbers.
        summary (MapSummary, optional): ``None`` where there is nothing to add up.
    """

    tasks: FrozenSet[int] = frozenset()
    summary: Optional[MapSummary] = None


@dataclass
class _Held:
    """What is held of a group."""

    packed: Dict[int, bytes] = field(default_factory=dict)
    summary: Optional[MapSummary] = None


#: Of this process. A worker has several threads.
_held: Dict[Group, _Held] = {}
#: Journal -> the client that goes on with it.
_owners: Dict[str, str] = {}
#: Tasks at work, by their client.
_running: Counter = Counter()
_lock = threading.Lock()


def scan_and_hold(packed: bytes, group: Group, task: int) -> Optional[Returned]:
    """One task: reads some files. ``None`` where another client goes on with the scan.

    Args:
        packed (bytes): The files and their settings, pickled and compressed.
        group (Group): What the task belongs to.
        task (int): Its number.
    """
    from distributed import get_worker

    with _lock:
        if _owners.setdefault(group.journal, group.client) != group.client:
            return None
        _running[group.client] += 1
    try:
        result = scan_chunk(*pickle.loads(zlib.decompress(packed)))
        lines = getattr(result, 'lines', None)
        if lines is None:  # no journal has such files
            return Returned(get_worker().address, result, b'')
        packed = zlib.compress('\n'.join(lines).encode(), 1)
        with _lock:
            _hold(_held.setdefault(group, _Held()), task, packed, getattr(result, 'summary', None))
    finally:
        with _lock:
            _running[group.client] -= 1
    bare = result._replace(lines=[])
    return Returned(
        get_worker().address, bare._replace(summary=None) if isinstance(bare, ChunkResult) else bare, packed
    )


def _hold(held: _Held, task: int, packed: bytes, summary: Optional[MapSummary]) -> None:
    if task in held.packed:  # run twice on this worker, as its first result did not arrive
        return
    held.packed[task] = packed
    if held.summary is None:
        held.summary = summary
    elif summary is not None:
        held.summary.merge(summary)


def unpacked(packed: bytes) -> List[str]:
    """Records, as lines of JSON."""
    return zlib.decompress(packed).decode().split('\n') if packed else []


def taken(group: Group, left_out: FrozenSet[int]) -> Part:
    """A leaf of the tree: what this worker has of a group, and holds no longer: the client has its records.

    Args:
        group (Group): What to take.
        left_out (frozenset[int]): Tasks that the client has split, and had run again.
    """
    with _lock:
        held = _held.pop(group, None)
    if held is None or left_out.intersection(held.packed):
        return Part()  # the client adds it up from the records
    return Part(frozenset(held.packed), held.summary)


def together(parts: List[Part]) -> Part:
    """A node of the tree. A part with tasks that are counted already, by a worker that was given up, is left out."""
    tasks: FrozenSet[int] = frozenset()
    summary: Optional[MapSummary] = None
    for part in parts:
        if part.summary is None or tasks & part.tasks:
            continue
        if summary is None:
            summary = MapSummary(part.summary.settings)  # what came is dask's, and may be given to another node again
        summary.merge(part.summary)
        tasks |= part.tasks
    return Part(tasks, summary)


async def handed_over(journal: str, client: str) -> List[bytes]:
    """The records that earlier clients of a journal may not have received, as :func:`unpacked` takes them.

    Their tasks that have not begun will read nothing; those at work are waited for.

    Args:
        journal (str): Its name.
        client (str): Who goes on with it.
    """
    with _lock:
        earlier = _owners.get(journal)
        _owners[journal] = client
    while earlier is not None and _running[earlier]:
        await asyncio.sleep(_POLL)
    with _lock:
        groups = [group for group in _held if group.journal == journal and group.client != client]
        return [packed for group in groups for packed in _held.pop(group).packed.values()]
