"""Writer and reader of the flight record: the last batches of a training, and how the training ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Deque, Dict, List, Optional

from mmguard.files.plain_data import Rank, parse_object
from mmguard.files.regular import open_append, open_regular, write_whole
from mmguard.log.run_files import UnreadParts, read_lines
from mmguard.log.run_log import FLIGHT, encode_line

#: Format of the file; changes when a field changes its meaning.
FORMAT = 2
#: When the file has this many times ``capacity`` batches, it is rewritten with the last ``capacity`` batches.
_SURPLUS = 10


class FlightRecord:
    """JSON-lines file of bounded size with at least the last ``capacity`` batches; replaces an existing file.

    Each line is passed to the operating system immediately, so lines survive a kill. A line that could not be
    written, e.g. on a full disk, is written with the next line; ``error`` is the reason. The process holds a lock on
    the file as long as it lives and writes, so a reader can tell if the training still runs.
    """

    def __init__(self, path: str, capacity: int, rank: int = 0) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self._head = _encode_line(dict(format=FORMAT, rank=rank, capacity=capacity))
        self._kept: Deque[bytes] = deque(maxlen=capacity + 1)  # the batches, and how training ended
        self._most = capacity * _SURPLUS
        self._lines = 0
        self._file: Optional[int] = None
        self._put(b'')

    def write(self, **entry: Any) -> None:
        """Append a line: a batch (``samples``), or the end of the training (``reason``)."""
        self._put(_encode_line(entry))

    def close(self) -> None:
        """Close the file, and keep it; a later line opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Remove the file after a training that ended without an error."""
        self.close()
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _put(self, line: bytes) -> None:
        self._kept.append(line)
        try:
            if self._file is None or self._lines >= self._most:
                self._rewrite()
            elif os.write(self._file, line) < len(line):
                raise OSError('only a part of a line could be written')
            self._lines += 1
            self.error = None
        except OSError as error:
            self.error = error
            self.close()

    def _rewrite(self) -> None:
        self.close()
        write_whole(Path(self.path), self._head + b''.join(self._kept))
        self._lines = len(self._kept)
        self._file = open_append(self.path)
        with contextlib.suppress(ImportError, OSError):  # Windows; a file system without locks
            import fcntl

            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _encode_line(entry: Dict[str, Any]) -> bytes:
    return encode_line({**entry, 'time': time.strftime('%Y-%m-%dT%H:%M:%S%z')})


#: Values of ``Flight.reason`` if the end of the training is not recorded.
KILLED, RUNNING = 'killed', 'still going on'
#: Limit of the first line of a record, in bytes.
_LARGEST = 1 << 10


@dataclass
class FlightSample:
    """A sample of a batch: its file, empty if not recorded."""

    path: str = ''


@dataclass
class FlightBatch:
    """A batch: its samples in their order, and its iteration as on the console."""

    samples: List[FlightSample]
    iter: Optional[int] = None


@dataclass
class RecordedException:
    """The exception that ended a training."""

    type: str = ''
    message: str = ''
    traceback: str = ''


@dataclass
class Flight:
    """Contents of a flight record."""

    rank: int = 0  #: Rank of the process.
    iter: Optional[int] = None  #: The last iteration.
    time: str = ''  #: Time of the last line.
    reason: str = ''  #: How training ended; ``KILLED`` or ``RUNNING`` if no end is recorded, empty if unreadable.
    exception: Optional[RecordedException] = None  #: The exception that ended the training.
    batches: List[FlightBatch] = field(default_factory=list)  #: The recorded batches, oldest first.
    unread: UnreadParts = field(default_factory=UnreadParts)  #: Parts that could not be understood.

    @property
    def error(self) -> str:
        """Type and message of the exception; ``''`` without an exception."""
        return '' if self.exception is None else f'{self.exception.type}: {self.exception.message}'


@dataclass
class _Entry:
    """A line of the record; each has only some of these fields."""

    rank: Optional[Rank] = None
    iter: Optional[int] = None
    time: Optional[str] = None
    reason: Optional[str] = None
    exception: Optional[RecordedException] = None
    samples: Optional[List[FlightSample]] = None


def read_flight(path: str) -> Flight:
    """Read a flight record, complete or still being written.

    Raises:
        OSError: The file cannot be opened.
        ValueError: The file is not a record of this format; the message names it.
    """
    flight = Flight()
    with open_regular(path) as file:
        capacity = _read_capacity(file, path)
        for entry in read_lines(file, path, _Entry, flight.unread):
            if entry.samples is not None:
                flight.batches.append(FlightBatch(entry.samples, entry.iter))
            for name in ('rank', 'iter', 'time', 'reason', 'exception'):
                value = getattr(entry, name)
                if value is not None:
                    setattr(flight, name, value)
        flight.reason = flight.reason or _find_state(file)
    flight.batches = flight.batches[-capacity:]
    return flight


def _read_capacity(file: BinaryIO, path: str) -> int:
    """Check the first line, rewind the file, and return how many batches the record keeps."""
    head: Dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        head = parse_object(file.readline(_LARGEST))
    file.seek(0)
    if 'capacity' not in head:
        raise ValueError(f'{path}: not a flight record. Expected a {FLIGHT}, which FlightRecorderHook writes')
    if head.get('format') != FORMAT:
        raise ValueError(f'{path}: expected format {FORMAT}, got {head.get("format")!r:.40}')
    capacity = head['capacity']
    return capacity if isinstance(capacity, int) and capacity > 0 else 0


def _find_state(file: BinaryIO) -> str:
    try:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return RUNNING
    except (ImportError, OSError):
        return f'{KILLED}, or {RUNNING}'
    return KILLED
