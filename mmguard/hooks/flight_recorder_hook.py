"""The hook that remembers what was in the last batches, for when a training dies."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
from collections import deque
from typing import Any, Callable, Deque, Dict, List, Optional

from mmengine import dist
from mmengine.hooks import Hook

from mmguard.hooks.discovery import built_train_loop, data_roots_of, samples_of
from mmguard.hooks.sigterm import SigtermWatch
from mmguard.labels import check_int
from mmguard.log.flight_record import FORMAT, write_record
from mmguard.log.json_lines import name_for_rank
from mmguard.log.source import relative_to, source_of
from mmguard.tally import LABEL_GUARD


class FlightRecorderHook(Hook):
    """Keeps the last batches in memory and writes them to ``<log_dir>/<out_file>`` when training ends badly.

    Badly is: by an exception (a CUDA assert, an error in data loading, Ctrl-C), by SIGTERM (a cluster's scheduler), or
    when an iteration takes longer than ``timeout`` (then training is left to go on). On rank 1 the file is
    ``label_guard_crash.rank1.json``, and so on. Only host values are written, nothing touches the GPU: after a
    device-side assert it could not be read any more.

    Args:
        capacity (int): Batches to keep. Defaults to 20.
        timeout (float, optional): Seconds that an iteration may take, from the end of the one before. ``None``: no
            watchdog.
        out_file (str): Name of the file.

    Raises:
        ValueError, TypeError: An argument out of range.
    """

    # Behind RuntimeInfoHook, which has fetched the losses from the device anyway.
    priority = 'NORMAL'

    def __init__(
        self, capacity: int = 20, timeout: Optional[float] = None, out_file: str = 'label_guard_crash.json'
    ) -> None:
        if check_int('capacity', capacity) < 1:
            raise ValueError(f'capacity must be at least 1, got {capacity}')
        if timeout is not None and not timeout > 0:
            raise ValueError(f'timeout must be more than 0 seconds, got {timeout}')
        self.capacity = capacity
        self.timeout = timeout
        self.out_file = out_file
        self._batches: Deque[Dict[str, Any]] = deque(maxlen=capacity)
        self._roots: List[str] = []
        self._path = self._reason = ''
        self._rank = 0
        self._place: Dict[str, int] = {}
        self._runner: Any = None
        self._sigterm: Optional[SigtermWatch] = None
        self._writing = threading.RLock()
        self._watchdog: Optional[_Watchdog] = None

    # ---- mmengine calls

    def before_run(self, runner: Any) -> None:
        loop = built_train_loop(runner)
        if loop is None:  # only validation runs
            return
        self._runner = runner
        self._rank = dist.get_rank()
        self._path = os.path.join(runner.log_dir, name_for_rank(self.out_file, self._rank))
        self._roots = list(data_roots_of(getattr(loop.dataloader, 'dataset', None)))
        run = loop.run

        def recorded_run() -> Any:
            self._begin()
            try:
                return run()
            except BaseException as error:  # Ctrl-C and SystemExit, too
                with self._sigterm.put_off() if self._sigterm else contextlib.nullcontext():
                    self._write('exception', error)
                raise
            finally:
                self._end()

        # No hook is called when training ends by an exception, wherever it comes from: loading, a step, validation.
        loop.run = recorded_run

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        self._place = {'iter': runner.iter + 1, 'epoch': runner.epoch + 1}
        self._batches.append(
            {**self._place, 'samples': [self._sample(sample) for sample in samples_of(data_batch)], 'losses': None}
        )

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Optional[dict] = None
    ) -> None:
        scalars = runner.message_hub.log_scalars
        names = [name for name in outputs or {} if f'train/{name}' in scalars]
        # The message hub holds host values: reading the outputs would wait for the device again.
        self._batches[-1]['losses'] = {name: float(scalars[f'train/{name}'].current()) for name in names}
        if self._watchdog is not None:
            self._watchdog.feed()

    # ---- how a training ends

    def _begin(self) -> None:
        self._reason = ''
        if threading.current_thread() is threading.main_thread():  # Python takes signals nowhere else
            self._sigterm = SigtermWatch(lambda: self._write('SIGTERM'))
        if self.timeout is not None:
            self._watchdog = _Watchdog(self.timeout, self._on_timeout)

    def _end(self) -> None:
        if self._watchdog is not None:
            self._watchdog.stop()
            self._watchdog = None
        if self._sigterm is not None:
            self._sigterm.stop()
            self._sigterm = None

    def _on_timeout(self, seconds: float) -> None:
        self._write(f'an iteration takes longer than timeout={seconds:g} s; training was left to go on')

    def _write(self, reason: str, error: Optional[BaseException] = None) -> None:
        """Writes the record; whatever goes wrong with it, the training's own end counts more."""
        # Not for ever: a thread that is stuck in a disk's write may hold it.
        if not self._writing.acquire(timeout=5):
            return
        try:
            # An exit that follows says less.
            if self._reason not in ('exception', 'SIGTERM'):
                self._reason = reason
                self._told(self._written(reason, error), reason)
        except Exception:
            pass  # a message that cannot be made into text, a logger that is closed
        finally:
            self._writing.release()

    def _written(self, reason: str, error: Optional[BaseException]) -> Optional[Exception]:
        record = {
            'format': FORMAT,
            'reason': reason,
            'time': time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            'rank': self._rank,
            **self._place,
            'exception': None if error is None else _described(error),
            'batches': list(self._batches),
        }
        return write_record(self._path, record)

    def _told(self, problem: Optional[Exception], reason: str) -> None:
        if self._runner is not None:
            told = f'cannot be written: {problem}' if problem else f'written: {reason}, last batches and their samples'
            self._runner.logger.error(f'guard: {self._path} {told}')

    def _sample(self, sample: Any) -> Dict[str, Any]:
        record = sample.get(LABEL_GUARD) or {}
        tallies = {kind: tally.to_json() for kind, tally in record.items()}
        for tally in tallies.values():
            tally.pop('source')
        source = source_of(sample)
        return {'source': relative_to(source, self._roots), 'path': source, **({'tallies': tallies} if tallies else {})}


def _described(error: BaseException) -> Dict[str, Any]:
    try:
        message = str(error)
        lines = traceback.format_exception(type(error), error, error.__traceback__)
    except Exception as problem:  # an exception whose own text raises
        message, lines = f'(its text cannot be made: {problem!r})', traceback.format_tb(error.__traceback__)
    return {'type': type(error).__name__, 'message': message, 'traceback': ''.join(lines)}


class _Watchdog:
    """Calls once when it was not fed for so many seconds."""

    def __init__(self, seconds: float, bark: Callable[[float], None]) -> None:
        self._seconds, self._bark = seconds, bark
        self._fed = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._watch, name='mmguard-watchdog', daemon=True)
        self._thread.start()

    def feed(self) -> None:
        self._fed.set()

    def stop(self) -> None:
        self._stopped = True
        self._fed.set()
        self._thread.join(timeout=1)

    def _watch(self) -> None:
        while not self._stopped:
            if self._fed.wait(self._seconds):
                self._fed.clear()
                continue
            self._bark(self._seconds)
            self._fed.wait()  # once per iteration that hangs
            self._fed.clear()
