"""Requests that are on the way while others are worked on: latency is waited for once, not once per file."""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Callable, Deque, Iterable, Iterator, TypeVar

#: Requests of a process at a time, and results that may wait for whoever asked.
AT_ONCE = 16
_WAITING = 2 * AT_ONCE

_Result = TypeVar('_Result')


def ahead(calls: Iterable[Callable[[], _Result]]) -> Iterator[_Result]:
    """The results of calls, in their order; a bounded number of them runs ahead in threads.

    Example:
        >>> list(ahead([lambda: 1, lambda: 2]))
        [1, 2]
    """
    threads = _threads(os.getpid())
    running: Deque[Future[_Result]] = deque()
    try:
        for call in calls:
            running.append(threads.submit(call))
            if len(running) == _WAITING:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()


@lru_cache(maxsize=None)
def _threads(process: int) -> ThreadPoolExecutor:
    """Those of this process: threads do not survive a fork."""
    return ThreadPoolExecutor(AT_ONCE, 'mmguard-storage')
