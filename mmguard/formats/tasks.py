"""Tasks of a scan: their size, and the interface of the mappers that run them here or in other processes."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Iterable, Iterator, List, Protocol, TypeVar

Element = TypeVar('Element')

#: Work per task, in seconds of a core. Sending a task and its result costs half a millisecond; at the end of a scan, or
#: if a process dies, at most one task per process is waited for or repeated.
WORK = 0.04
#: Longest wall-clock time of a task, in seconds; it exceeds the work on a slow disk or a busy machine.
CLOCK = 0.25
#: Number of files in the first tasks, before anything is timed, and the maximum for any task.
FIRST, MOST = 2, 32


class TaskSize:
    """Number of files per task, adapted to how long earlier tasks took.

    Example:
        >>> size = TaskSize()
        >>> size.learn(files=2, work=0.02, clock=0.03)
        >>> size()
        4
    """

    def __init__(self) -> None:
        self._files = 0
        self._work = self._clock = 0.0

    def learn(self, files: int, work: float, clock: float) -> None:
        """Record the duration of a task, in seconds."""
        self._files += files
        self._work += work
        self._clock += clock

    def __call__(self) -> int:
        if not self._files:
            return FIRST
        # The clock may show no progress over a task of tiny files.
        by_work, by_clock = WORK / max(self._work, 1e-9), CLOCK / max(self._clock, 1e-9)
        return max(1, min(MOST, round(min(by_work, by_clock) * self._files)))


def split_into_chunks(elements: Iterable[Element], size: Callable[[], int]) -> Iterator[List[Element]]:
    """Yield lists of ``size()`` elements, calling ``size`` before each list; the last may be shorter."""
    source = iter(elements)
    while True:
        chunk = list(itertools.islice(source, size()))
        if not chunk:
            return
        yield chunk


class Settings(Protocol):
    """Settings of a scan, which are sent to a process with a task's items and read them."""

    def scan(self, items: List[Any]) -> Any:
        """Return the result of one task."""

    def report_crash(self, item: Any) -> Any:
        """Return the result for an item that crashed the process reading it."""


#: Runs ``settings.scan`` over chunks of items, in any order, with a bounded number of them in flight.
Mapper = Callable[[Iterable[List[Any]], Settings], Iterator[Any]]


def scan_here(chunks: Iterable[List[Any]], settings: Settings) -> Iterator[Any]:
    """Yield the result of each chunk, computed in this process."""
    for chunk in chunks:
        yield settings.scan(chunk)
