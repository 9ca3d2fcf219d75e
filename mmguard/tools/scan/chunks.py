"""How many files make a task."""

from __future__ import annotations

import itertools
from typing import Callable, Iterable, Iterator, List, TypeVar

Element = TypeVar('Element')

#: Work per task, seconds of a core. Handing a task over and its result back costs half a millisecond; at the end of a
#: scan, and where a process dies, up to one task per process is waited for, or read again.
WORK = 0.04
#: The longest that a task should take by the clock, which on a slow disk or a busy machine goes on without work.
CLOCK = 0.25
#: Files of the first tasks, when nothing has been timed yet, and the most of any.
FIRST, MOST = 2, 32
#: So many times as long where files are fetched: at the beginning of a task nothing has come yet. And so many times as
#: many files at most, which whoever hands tasks out has to hold.
FAR = 8


class TaskSize:
    """Files per task, from how long the files so far took.

    Example:
        >>> size = TaskSize()
        >>> size.learn(files=2, work=0.02, clock=0.03)
        >>> size()
        4

    Attributes:
        longer (int): So many times as long as on this machine.
    """

    def __init__(self, longer: int = 1) -> None:
        self.longer = longer
        self._files = 0
        self._work = self._clock = 0.0

    def learn(self, files: int, work: float, clock: float) -> None:
        """Adds what a task has taken, seconds."""
        self._files += files
        self._work += work
        self._clock += clock

    def __call__(self) -> int:
        most = min(self.longer, FAR)
        if not self._files:
            return FIRST * most
        # A clock may stand still over a task of tiny files.
        by_work, by_clock = WORK / max(self._work, 1e-9), CLOCK / max(self._clock, 1e-9)
        return max(1, min(MOST * most, round(min(by_work, by_clock) * self._files * self.longer)))


def in_chunks(elements: Iterable[Element], size: Callable[[], int]) -> Iterator[List[Element]]:
    """Lists of as many elements as ``size`` says when each is asked for; the last may be shorter."""
    source = iter(elements)
    while True:
        chunk = list(itertools.islice(source, size()))
        if not chunk:
            return
        yield chunk
