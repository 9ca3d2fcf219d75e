"""Which samples of a flight record to replay, and in what order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import List, Optional

from mmguard.errors import CannotRun
from mmguard.labels.samples import UNKNOWN
from mmguard.log.flight_record import NAME, Flight, FlightBatch, FlightSample, read_flight
from mmguard.tools.paths import common_tail, parts_of


@dataclass(frozen=True)
class Recorded:
    """A sample of a recorded batch.

    Args:
        path (str): Its label file, or image, as it was named where the training ran.
        source (str): The same, relative to its data root: for people.
        iteration (int, optional): The iteration of its batch, as the console counts; ``None``: it is not recorded.
        unfinished (bool): Whether the batch has no losses: training ended within its iteration.
    """

    path: str
    source: str
    iteration: Optional[int] = None
    unfinished: bool = False


def load_record(file: str) -> Flight:
    """Reads a flight record.

    Raises:
        CannotRun: It cannot be read, or is none.
    """
    try:
        return read_flight(file)
    except OSError as error:
        raise CannotRun(
            f'{file}: {error.strerror or error}. Wanted is the {NAME} that FlightRecorderHook writes into the log '
            f'folder of a run'
        ) from error
    except ValueError as error:
        raise CannotRun(str(error)) from error


def recorded_batches(flight: Flight, file: str) -> List[List[Recorded]]:
    """The batches of a record, the newest first; the samples of each in their order, without repetitions.

    Raises:
        CannotRun: It holds no sample.
    """
    batches = [batch for batch in reversed(flight.batches) if batch.samples]
    if not batches:
        raise CannotRun(
            '\n'.join(
                [
                    f'{file}: no batch is recorded. Training ended before the first one was loaded: '
                    f'{exception_of(flight) or flight.reason}',
                    *flight.unread.words(),
                ]
            )
        )
    return [list(dict.fromkeys(_recorded(sample, batch) for sample in batch.samples)) for batch in batches]


def _recorded(sample: FlightSample, batch: FlightBatch) -> Recorded:
    path = sample.path or sample.source or UNKNOWN
    return Recorded(path, sample.source or path, batch.iter, batch.losses is None)


def chosen(batches: List[List[Recorded]], wanted: str) -> Recorded:
    """The recorded sample that a path means; one of its own, without iteration, where none is recorded.

    Raises:
        CannotRun: Several recorded samples end so.
    """
    length = len(parts_of(wanted))
    found = {r.path: r for batch in reversed(batches) for r in batch if common_tail(r.path, wanted) >= length}
    if len(found) > 1:
        raise CannotRun(f'--sample {wanted}: {len(found)} recorded samples end so: {", ".join(found)}. Name more')
    return next(iter(found.values()), Recorded(wanted, wanted))


def exception_of(flight: Flight) -> str:
    """The exception that ended the training, in one line; empty where none did."""
    error = flight.exception
    return '' if error is None else f'{error.type}: {" ".join(error.message.split())[:300]}'
