"""Hook that records the last batches, for analysis after a training crashes or is killed."""

from __future__ import annotations

import os
from contextlib import contextmanager
from traceback import TracebackException
from typing import Any, Iterator, Optional

from mmengine import dist

from mmguard.distributed.agreement import list_trainable
from mmguard.hooks.discovery import find_samples
from mmguard.hooks.runs import HookAroundTraining
from mmguard.labels.rules import check_int
from mmguard.labels.tally import get_source
from mmguard.log.flight_record import FlightRecord
from mmguard.log.run_log import FLIGHT, name_for_rank
from mmguard.text import visible


class FlightRecorderHook(HookAroundTraining):
    """Hook that writes the last batches to ``<log_dir>/label_guard_flight.jsonl`` as they arrive.

    The file is removed when training succeeds, and remains after any other end: an exception (with its traceback),
    Ctrl-C, SIGTERM, SIGKILL, the kernel's out-of-memory killer. On rank 1 the file is
    ``label_guard_flight.rank1.jsonl``. Nothing is read from a GPU, which is unusable after a device-side assert.

    Args:
        capacity (int): Batches to keep. Defaults to 20.

    Raises:
        ValueError, TypeError: ``capacity`` is not a positive integer.
    """

    def __init__(self, capacity: int = 20) -> None:
        self.capacity = check_int('capacity', capacity, at_least=1)
        self._record: Optional[FlightRecord] = None
        self._unwritten = False

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        samples = [{'path': get_source(sample)} for sample in find_samples(data_batch)]
        self._write(runner, iter=runner.iter + 1, samples=samples)

    @contextmanager
    def around_training(self, runner: Any) -> Iterator[None]:
        rank = dist.get_rank()
        self._unwritten = False
        path = os.path.join(runner.log_dir, name_for_rank(FLIGHT, rank))
        record = self._record = FlightRecord(path, self.capacity, rank)
        try:
            yield
            record.remove()
        except BaseException as error:  # Ctrl-C and SystemExit, too
            parts = TracebackException.from_exception(error)  # safe even if str(error) raises
            message = add_names(str(parts), getattr(runner, 'model', None))
            described = dict(type=type(error).__name__, message=message, traceback=''.join(parts.format()))
            self._write(runner, reason='exception', exception=described)
            if record.error is None:
                runner.logger.error(f'guard: the last batches are in {path!r}: run `mmguard replay` on this file')
            raise
        finally:
            record.close()
            self._record = None

    def _write(self, runner: Any, **entry: Any) -> None:
        if self._record is None:
            return
        self._record.write(**entry)
        if self._record.error is not None and not self._unwritten:
            self._unwritten = True
            runner.logger.error(f'guard: {self._record.path!r} cannot be written: {visible(str(self._record.error))}')


def add_names(message: str, module: Any) -> str:
    """Append the names of the parameters that a DistributedDataParallel message gives only as indices."""
    from mmguard.facts.run import find_unused  # needed only after a failure

    found = find_unused([message])
    if not found.indices or found.names or module is None:
        return message
    names = [name for name, _ in list_trainable(module)]
    lines = [
        f'Parameters which did not receive grad for rank {rank}: '
        f'{", ".join(names[one] for one in indices if one < len(names))}'
        for rank, indices in found.indices.items()
    ]
    return '\n'.join([message, *lines])
