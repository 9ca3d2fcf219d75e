"""Requests that are made again, and what they raise in the end: an ``OSError`` as of a disk, without credentials."""

from __future__ import annotations

import errno
import os
import random
import time
from typing import Any, Callable, Optional, TypeVar

from mmguard.errors import CannotRun
from mmguard.tools.storage.urls import masked

#: Requests for one object, the first included.
TRIES = 6
#: Seconds before the second; each further wait is twice as long, up to the longest.
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
#: After so many objects in a row that failed for good, nothing is asked for twice: the storage is down.
_PATIENCE = 50

_FINAL = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR, 404, 410), errno.ENOENT),
    **dict.fromkeys((errno.EACCES, errno.EPERM, 401, 403), errno.EACCES),
    errno.EISDIR: errno.EISDIR,
}
#: All that gcsfs says of a 403.
_FORBIDDEN = 'Forbidden: '

_Result = TypeVar('_Result')
_given_up = 0


def tried(call: Callable[[], _Result], place: str) -> _Result:
    """Calls until it goes well, with longer and longer waits that differ from process to process.

    Args:
        call (callable): Makes one request.
        place (str): What it is for.

    Raises:
        OSError: ``ENOENT`` and ``EACCES`` at once, ``EIO`` after so many tries.
        CannotRun: A package is missing.
    """
    global _given_up
    tries = TRIES if _given_up < _PATIENCE else 1
    for number in range(tries):
        try:
            result = call()
        except CannotRun:
            raise
        except Exception as error:  # libraries of storage raise what they like
            final = _final(error)
            if final is not None:
                raise OSError(final, os.strerror(final), place) from None
            if number + 1 == tries:
                _given_up += 1
                # What differs from object to object stands behind: faults of one kind are counted together.
                raise OSError(errno.EIO, f'failed {tries} times', masked(f'{place} ({_words(error)})')) from None
            time.sleep(random.uniform(0.5, 1.0) * min(LONGEST_WAIT, FIRST_WAIT * 2**number))
        else:
            _given_up = 0
            return result
    raise AssertionError('unreachable')


def _final(error: BaseException) -> Optional[int]:
    """The number of an error that asking again does not change."""
    status = _status(error)
    if status is None and isinstance(error, FileNotFoundError):
        # fsspec says so of whatever a server of HTTP answers.
        cause = error.__cause__
        status = errno.ENOENT if cause is None or isinstance(cause, FileNotFoundError) else _status(cause) or errno.EIO
    elif status is None and (isinstance(error, PermissionError) or str(error).startswith(_FORBIDDEN)):
        status = errno.EACCES
    elif status is None and isinstance(error, KeyError):  # of an archive
        status = errno.ENOENT
    return _FINAL.get(status) if status is not None else None


def _status(error: BaseException) -> Optional[int]:
    """The status of HTTP, or the number of the system."""
    response: Any = getattr(error, 'response', None)
    if isinstance(response, dict):  # of botocore
        return int(response.get('ResponseMetadata', {}).get('HTTPStatusCode') or 0) or None
    for name in ('status', 'code', 'errno'):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return value
    return None


def _words(error: BaseException) -> str:
    text = ' '.join(str(error).split())[:200]
    return f'{type(error).__name__}: {text}' if text else type(error).__name__
