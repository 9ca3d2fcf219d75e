"""Hook that records the last batches, for analysis after a training dies."""

from __future__ import annotations

import math
import os
from contextlib import contextmanager
from traceback import TracebackException
from typing import Any, Dict, Iterator, List, Optional

from mmengine import dist

from mmguard.distributed.unused_parameters import add_names
from mmguard.hooks.discovery import find_naming_roots, find_samples, get_dataset
from mmguard.hooks.runs import HookAroundTraining
from mmguard.labels.rules import check_int
from mmguard.labels.tally import get_source, get_tallies, make_relative
from mmguard.log.flight_record import NAME, FlightRecord
from mmguard.log.run_log import name_for_rank
from mmguard.text import visible


class FlightRecorderHook(HookAroundTraining):
    """Hook that writes the last batches to ``<log_dir>/<out_file>`` as they arrive.

    It removes the file when training ends well, so the file remains after any other end: an exception (with its
    traceback), Ctrl-C, SIGTERM, SIGKILL, the kernel's out-of-memory killer.
    On rank 1 the file is ``label_guard_flight.rank1.jsonl``, and so on. Only host values are written, because a GPU
    cannot be read after a device-side assert.

    Args:
        capacity (int): Batches to keep. Defaults to 20.
        out_file (str): Name of the file.

    Raises:
        ValueError, TypeError: An argument out of range.
    """

    # After RuntimeInfoHook, which has fetched the losses from the device anyway.
    priority = 'NORMAL'

    def __init__(self, capacity: int = 20, out_file: str = NAME) -> None:
        self.capacity = check_int('capacity', capacity, at_least=1)
        self.out_file = out_file
        self._roots: List[str] = []
        self._record: Optional[FlightRecord] = None
        self._unwritten = False

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        samples = [self._sample(sample) for sample in find_samples(data_batch)]
        self._write(runner, iter=runner.iter + 1, epoch=runner.epoch + 1, samples=samples)

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        scalars = runner.message_hub.log_scalars
        # The message hub holds host values: reading the outputs would wait for the device again.
        losses = {
            name: float(scalars[f'train/{name}'].current()) for name in outputs or {} if f'train/{name}' in scalars
        }
        # JSON has no NaN: write 'nan', 'inf', '-inf', which float reads back.
        self._write(runner, losses={n: loss if math.isfinite(loss) else str(loss) for n, loss in losses.items()})

    @contextmanager
    def around_training(self, runner: Any) -> Iterator[None]:
        rank = dist.get_rank()
        self._roots = find_naming_roots(get_dataset(runner, 'train'))
        self._unwritten = False
        path = os.path.join(runner.log_dir, name_for_rank(self.out_file, rank))
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
                runner.logger.error(f'guard: the last batches and their samples are in {path!r}, for mmguard replay')
            raise
        finally:
            record.close()

    def _write(self, runner: Any, **entry: Any) -> None:
        if self._record is None:
            return
        self._record.write(**entry)
        if self._record.error is not None and not self._unwritten:
            self._unwritten = True
            runner.logger.error(f'guard: {self._record.path!r} cannot be written: {visible(str(self._record.error))}')

    def _sample(self, sample: Any) -> Dict[str, Any]:
        tallies = {kind: tally.to_json() for kind, tally in get_tallies(sample).items()}
        for tally in tallies.values():
            tally.pop('source')
        source = get_source(sample)
        return {
            'source': make_relative(source, self._roots),
            'path': source,
            **({'tallies': tallies} if tallies else {}),
        }
