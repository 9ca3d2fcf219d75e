"""What a flight record says: the last batches of a training, and how it ended."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Dict, List, Optional

from mmguard.files.regular import open_regular
from mmguard.files.typed_json import Rank, parsed
from mmguard.labels.tally import Tally
from mmguard.log.flight_record import FORMAT, NAME
from mmguard.log.line_reader import Unread, read_lines
from mmguard.log.totals import KINDS

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
