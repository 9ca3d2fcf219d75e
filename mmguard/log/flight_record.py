"""The last batches of a training, on disk as they happen."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Deque, Dict, Optional

from mmguard.files.whole import write_whole
from mmguard.log.json_lines import encoded

NAME = 'label_guard_flight.jsonl'
#: Counts up when a field changes its meaning. 1 was one JSON object, written when training ended badly.
FORMAT = 2
#: The file is cut to the last batches when it holds so many times as many.
_SURPLUS = 10


class FlightRecord:
    """A file of JSON lines, of bounded size, that holds at least the last batches.

    Each line is handed to the operating system at once, so none is missing after a kill. A line that could not be
    written, on a disk that is full say, is written with the next one. The process holds a lock on the file for
    as long as it lives and writes: who reads it knows whether the training goes on.

    Args:
        path (str): The file; made, with its folder, at once. One that is there is replaced.
        capacity (int): Batches to keep.
        rank (int): Of the process.

    Attributes:
        error (OSError, optional): Why the last line could not be written.
    """

    def __init__(self, path: str, capacity: int, rank: int = 0) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self._head = _line(dict(format=FORMAT, rank=rank, capacity=capacity))
        # Two lines per batch: when it is there, and when its iteration has ended.
        self._kept: Deque[bytes] = deque(maxlen=2 * capacity)
        self._most = 2 * capacity * _SURPLUS
        self._lines = 0
        self._file: Optional[int] = None
        self._closed = False
        self._lock = threading.Lock()  # a watchdog writes, too
        self._put(b'')

    def write(self, **entry: Any) -> None:
        """Appends a line: a batch (``samples``), the ``losses`` of the last one, or how training ended (``reason``)."""
        with self._lock:
            if not self._closed:
                self._put(_line(entry))

    def close(self) -> None:
        """Ends writing, and leaves the file as it is."""
        with self._lock:
            self._closed = True
            self._close_file()

    def remove(self) -> None:
        """Ends writing and removes the file: training ended well."""
        self.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _put(self, line: bytes) -> None:
        self._kept.append(line)
        try:
            if self._file is None or self._lines >= self._most:
                self._begin_anew()
            elif os.write(self._file, line) < len(line):
                raise OSError('only a part of a line could be written')
            self._lines += 1
            self.error = None
        except OSError as error:
            self.error = error
            self._close_file()

    def _begin_anew(self) -> None:
        self._close_file()
        write_whole(Path(self.path), self._head + b''.join(self._kept))
        self._lines = len(self._kept)
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        with contextlib.suppress(ImportError, OSError):  # Windows; a file system without locks
            import fcntl

            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _close_file(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _line(entry: Dict[str, Any]) -> bytes:
    return encoded({**entry, 'time': time.strftime('%Y-%m-%dT%H:%M:%S%z')})
