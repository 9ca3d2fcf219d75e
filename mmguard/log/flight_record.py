"""The flight record: the last batches of a training and how it ended, written and read."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Deque, Dict, List, Optional

from mmguard.files.regular import open_regular
from mmguard.files.typed_json import Rank, parsed
from mmguard.files.whole import write_whole
from mmguard.labels.tally import Tally
from mmguard.log.iteration_stats import KINDS
from mmguard.log.lines import Unread, read_lines
from mmguard.log.run_log import encoded

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


#: What became of a training that wrote no end: the ``reason`` of its record.
KILLED, RUNNING = 'killed', 'still going on'
#: Format 1 was one JSON object, of fewer bytes.
_LARGEST = 1 << 25


@dataclass
class FlightSample:
    """A sample of a batch: its file, as it was named where the training ran and below its data root; what guards found.

    Args:
        path, source (str): Empty where it is not recorded.
        tallies (dict[str, Tally]): Kind -> counts.
    """

    path: str = ''
    source: str = ''
    tallies: Dict[str, Tally] = field(default_factory=dict)

    @property
    def invalid(self) -> Dict[str, Tally]:
        """The tallies with anything; of a kind that only another version knows, none."""
        return {kind: tally for kind, tally in self.tallies.items() if kind in KINDS and tally}


@dataclass
class FlightBatch:
    """A batch.

    Args:
        samples (list[FlightSample]): In their order.
        iter (int, optional): As the console counts.
        losses (dict[str, float], optional): ``None``: training ended within this iteration.
    """

    samples: List[FlightSample]
    iter: Optional[int] = None
    losses: Optional[Dict[str, float]] = None


@dataclass
class Raised:
    """The exception that ended a training."""

    type: str = ''
    message: str = ''
    traceback: str = ''


@dataclass
class Flight:
    """A flight record.

    Args:
        rank (int): Of the process.
        iter, epoch (int, optional): The last.
        time (str): Of the last line.
        reason (str): How training ended; ``KILLED`` or ``RUNNING`` where no end was written. Empty: it cannot be read.
        exception (Raised, optional): What ended it.
        batches (list[FlightBatch]): The oldest first.
        unread (Unread): What could not be understood.
    """

    rank: int = 0
    iter: Optional[int] = None
    epoch: Optional[int] = None
    time: str = ''
    reason: str = ''
    exception: Optional[Raised] = None
    batches: List[FlightBatch] = field(default_factory=list)
    unread: Unread = field(default_factory=Unread)


@dataclass
class _Entry:
    """A line; of all these, it has some."""

    rank: Optional[Rank] = None
    iter: Optional[int] = None
    epoch: Optional[int] = None
    time: Optional[str] = None
    reason: Optional[str] = None
    exception: Optional[Raised] = None
    samples: Optional[List[FlightSample]] = None
    losses: Optional[Dict[str, float]] = None


def read_flight(path: str) -> Flight:
    """Reads a flight record, whole or still being written.

    Raises:
        OSError: No such file.
        ValueError: No record of this format; the message names the file.
    """
    flight = Flight()
    with open_regular(path) as file:
        head = _head_of(file, path)
        if 'capacity' not in head:
            _read_object(head, path, flight)
        else:
            for entry in read_lines(file, path, _Entry, flight.unread):
                _add(flight, entry)
            flight.reason = flight.reason or _state_of(file)
    capacity = head.get('capacity')
    if isinstance(capacity, int) and capacity > 0:
        flight.batches = flight.batches[-capacity:]
    return flight


def _head_of(file: BinaryIO, path: str) -> Dict[str, Any]:
    """What the first line says; of the older format, the whole file. The file is left at its beginning."""
    for read in (file.readline, file.read):
        file.seek(0)
        with contextlib.suppress(ValueError):
            head = parsed(read(_LARGEST))
            if 'capacity' in head or isinstance(head.get('batches'), list):
                break
    else:
        raise ValueError(f'{path}: not a flight record. Wanted is a {NAME}, which FlightRecorderHook writes')
    if head.get('format') not in (1, FORMAT):
        raise ValueError(f'{path}: format {head.get("format")!r:.40}, this mmguard reads {FORMAT}')
    file.seek(0)
    return head


def _read_object(record: Dict[str, Any], path: str, flight: Flight) -> None:
    for number, batch in enumerate(record['batches']):
        found = flight.unread.decoded(FlightBatch, batch, f'{path}: batches[{number}]')
        flight.batches += [] if found is None else [found]
    entry = flight.unread.decoded(_Entry, record, f'{path}: how it ended')
    if entry is not None:
        _add(flight, entry)


def _add(flight: Flight, entry: _Entry) -> None:
    if entry.samples is not None:
        flight.batches.append(FlightBatch(entry.samples, entry.iter, entry.losses))
    elif entry.losses is not None:
        flight.reason = ''  # it took long, and ended
        # Another has them already where the line of their batch is damaged.
        if flight.batches and flight.batches[-1].losses is None:
            flight.batches[-1].losses = entry.losses
    for name in ('rank', 'iter', 'epoch', 'time', 'reason', 'exception'):
        value = getattr(entry, name)
        if value is not None:
            setattr(flight, name, value)


def _state_of(file: BinaryIO) -> str:
    try:
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return RUNNING
    except (ImportError, OSError):
        return f'{KILLED}, or {RUNNING}'
    return KILLED
