"""Which samples of a flight record to replay, and in what order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Optional

from mmguard.log.flight_record import NAME, read_record
from mmguard.replay.errors import CannotReplay
from mmguard.replay.paths import common_tail, parts_of


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


def load_record(file: str) -> Dict[str, Any]:
    """Reads a flight record.

    Raises:
        CannotReplay: It cannot be read, or is none.
    """
    try:
        return read_record(file)
    except OSError as error:
        raise CannotReplay(
            f'{file}: {error.strerror or error}. Wanted is the {NAME} that FlightRecorderHook writes into the log '
            f'folder of a run'
        ) from error
    except ValueError as error:
        raise CannotReplay(str(error)) from error


def recorded_batches(record: Dict[str, Any], file: str) -> List[List[Recorded]]:
    """The batches of a record, the newest first; the samples of each in their order, without repetitions.

    Raises:
        CannotReplay: It holds no sample.
    """
    batches = []
    for batch in reversed(record['batches']):
        if not isinstance(batch, dict) or not isinstance(batch.get('samples'), list):
            raise CannotReplay(f'{file}: a batch without "samples": {str(batch)[:80]}. The file is damaged')
        samples = [_recorded(sample, batch) for sample in batch['samples'] if isinstance(sample, dict)]
        if samples:
            batches.append(list(dict.fromkeys(samples)))
    if not batches:
        raise CannotReplay(
            f'{file}: no batch is recorded. Training ended before the first one was loaded: '
            f'{told_exception(record) or record.get("reason")}'
        )
    return batches


def _recorded(sample: Dict[str, Any], batch: Dict[str, Any]) -> Recorded:
    path = str(sample.get('path') or sample.get('source') or '<unknown>')
    return Recorded(path, str(sample.get('source') or path), batch.get('iter'), batch.get('losses') is None)


def chosen(batches: List[List[Recorded]], wanted: str) -> Recorded:
    """The recorded sample that a path means; one of its own, without iteration, where none is recorded.

    Raises:
        CannotReplay: Several recorded samples end so.
    """
    length = len(parts_of(wanted))
    found = {r.path: r for batch in reversed(batches) for r in batch if common_tail(r.path, wanted) >= length}
    if len(found) > 1:
        raise CannotReplay(f'--sample {wanted}: {len(found)} recorded samples end so: {", ".join(found)}. Name more')
    return next(iter(found.values()), Recorded(wanted, wanted))


def told_exception(record: Dict[str, Any]) -> str:
    """The exception that ended the training, in one line; empty where none did."""
    error = record.get('exception')
    if not isinstance(error, dict):
        return ''
    return f'{error.get("type")}: {" ".join(str(error.get("message")).split())[:300]}'
