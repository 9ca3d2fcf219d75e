"""A single request with a time limit, a message while waiting, and the errors of a disk."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import lru_cache
from typing import Any, Callable, Deque, Iterable, Iterator, Optional, TypeVar

from mmguard.errors import CannotRun
from mmguard.storage.urls import mask_secrets
from mmguard.text import describe_error

#: Environment variable: seconds that a request may take without a byte, overriding the default.
SECONDS = 'MMGUARD_REQUEST_SECONDS'
_DEFAULT_SECONDS = 60.0
#: Bytes per second below which a body counts as stalled: it would hold a request open for days.
SLOWEST = 16 << 10
#: Seconds before a line reports the wait, and between two such lines.
_SILENCE = 10.0

_KINDS = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, 404, 410), errno.ENOENT),
    **dict.fromkeys((errno.EACCES, errno.EPERM, 401, 403), errno.EACCES),
    errno.EISDIR: errno.EISDIR,
}
#: gcsfs's entire message for a 403.
_FORBIDDEN = 'Forbidden: '

_Result = TypeVar('_Result')


class Refused(OSError):
    """A file that is not read because it is too large or leads elsewhere, as text."""


_said = float('-inf')


class Transfer:
    """Size of a request's body, for its time limit; a reader of unknown size adds the bytes received."""

    def __init__(self, size: int = 0) -> None:
        self.size = size


def time_limit() -> float:
    """Return the seconds that a request may take without receiving a byte."""
    text = os.environ.get(SECONDS, '')
    try:
        seconds = float(text or _DEFAULT_SECONDS)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float('inf'):
        raise CannotRun(f'{SECONDS} must be a number of seconds above 0, got {text!r}')
    return seconds


def ask(call: Callable[[], _Result], place: str, transfer: Optional[Transfer] = None) -> _Result:
    """Run a request for a place, with a time limit that grows with its body.

    It runs in a thread of its own, because libraries limit at most the time between two bytes, and some limit nothing.

    Raises:
        OSError: ``ENOENT``, ``EACCES`` or ``EISDIR`` as for a disk, else ``EIO``; the message has no credentials.
        CannotRun: A package is missing.
        Refused: The file must not be read.
    """
    limit, began = time_limit(), time.monotonic()
    outcome: Future[_Result] = Future()
    threading.Thread(target=_settle, args=(call, outcome), daemon=True).start()
    while not wait([outcome], min(0.2 if limit < _SILENCE else 1.0, limit)).done:
        waited = time.monotonic() - began
        allowed = limit + (transfer.size / SLOWEST if transfer else 0)
        if waited > allowed:
            raise OSError(errno.EIO, f'was not received within {waited:.0f} seconds', mask_secrets(place))
        if waited > _SILENCE:
            _say(f'mmguard: waiting for {mask_secrets(place)} ({waited:.0f} of at most {allowed:.0f} seconds)')
    try:
        return outcome.result()
    except (CannotRun, Refused):
        raise
    except Exception as error:  # storage libraries may raise anything
        kind = _kind_of(error)
        if kind is not None:
            raise OSError(kind, os.strerror(kind), mask_secrets(place)) from None
        # Only the file name differs from object to object, so faults of one kind are counted together.
        raise OSError(
            errno.EIO, 'the request failed', mask_secrets(f'{place} ({describe_error(error, 200)})')
        ) from None


def _settle(call: Callable[[], _Result], outcome: Future[_Result]) -> None:
    try:
        outcome.set_result(call())
    except BaseException as error:  # raised again in the waiting thread
        outcome.set_exception(error)


def _say(line: str) -> None:
    global _said
    if time.monotonic() - _said > _SILENCE:
        _said = time.monotonic()
        print(line, file=sys.stderr, flush=True)


def _kind_of(error: BaseException) -> Optional[int]:
    """Return the equivalent error number of a disk."""
    status = _status(error)
    if status is None and isinstance(error, FileNotFoundError):
        status = errno.ENOENT
    elif status is None and (isinstance(error, PermissionError) or str(error).startswith(_FORBIDDEN)):
        status = errno.EACCES
    return _KINDS.get(status) if status is not None else None


def _status(error: BaseException) -> Optional[int]:
    """Return the HTTP status, or the system's error number."""
    response: Any = getattr(error, 'response', None)
    if isinstance(response, dict):  # from botocore
        return int(response.get('ResponseMetadata', {}).get('HTTPStatusCode') or 0) or None
    for name in ('status', 'code', 'errno'):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return value
    return None


#: Number of concurrent requests of a process, and of results waiting to be consumed.
AT_ONCE = 16
_WAITING = 2 * AT_ONCE


def ahead(calls: Iterable[Callable[[], _Result]]) -> Iterator[_Result]:
    """Yield the results of calls in order, while threads run a bounded number of later ones.

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
    """Return the threads of this process: they do not survive a fork."""
    return ThreadPoolExecutor(AT_ONCE, 'mmguard-storage')
