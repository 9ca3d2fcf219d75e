"""The log shared by the hooks of a run, its sums over ranks, its scalars, and contexts around a training."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from functools import partial
from typing import Any, Callable, ContextManager, Dict, List, Sequence
from weakref import WeakKeyDictionary

import numpy as np
import torch
from mmengine import dist
from mmengine.hooks import CheckpointHook, Hook, LoggerHook
from mmengine.logging import HistoryBuffer

from mmguard.hooks.discovery import get_built_loop, get_loaders
from mmguard.log.run_log import RunLog
from mmguard.log.statistics import SCALARS, SEEN
from mmguard.text import visible

_LOGS: WeakKeyDictionary[Any, RunLog] = WeakKeyDictionary()


def run_log_of(runner: Any) -> RunLog:
    """Return the log of a run, which its hooks share."""
    if runner not in _LOGS:
        rank, world_size = dist.get_rank(), dist.get_world_size()
        _LOGS[runner] = RunLog(runner.log_dir, rank, world_size, config=runner.cfg.filename)
    return _LOGS[runner]


def warn_of_problems(runner: Any) -> None:
    """Warn of log files that cannot be written; each once."""
    for problem in _LOGS[runner].take_problems():
        runner.logger.warning(f'guard: {visible(problem)}')


def get_train_position(runner: Any, loop: Any, batch_idx: int) -> Dict[str, int]:
    """Return the iteration as the console counts it: over the loop, or in the epoch if logs go by epoch."""
    if runner.log_processor.by_epoch:
        return {'iter': batch_idx + 1, 'epoch': loop.epoch + 1, 'step': loop.iter + 1}
    return {'iter': loop.iter + 1}


class Schedule:
    """Iterations after which the counts of a training are shown by a logger, or saved in a checkpoint.

    Args:
        runner (Runner): At the start of an epoch.
    """

    def __init__(self, runner: Any) -> None:
        hooks = runner.hooks
        # Other hooks may read the message hub even without a LoggerHook: use the default interval then.
        self._loggers = [hook for hook in hooks if isinstance(hook, LoggerHook)] or [LoggerHook()]
        self._savers = [hook for hook in hooks if isinstance(hook, CheckpointHook) and not hook.by_epoch]
        #: True if this process is the only rank.
        self.is_alone = dist.get_world_size() == 1
        self._length = 0  # of a stream
        with suppress(TypeError):
            self._length = len(get_loaders(runner, 'train')[0])  # LoggerHook only supports this one

    def is_logged(self, batch_idx: int) -> bool:
        """True if a LoggerHook shows the scalars after this iteration, see ``LoggerHook.after_train_iter``."""
        done = batch_idx + 1
        for hook in self._loggers:
            if done % hook.interval == 0:
                return True
            if done == self._length and (not hook.ignore_last or done <= hook.interval):
                return True
        return False

    def is_added_up(self, runner: Any, batch_idx: int) -> bool:
        """True if ranks add up their counts, although no logger shows them; they wait for each other in this case."""
        return (
            self.is_alone
            or batch_idx + 1 == self._length
            or any(hook.every_n_train_iters(runner, hook.interval, hook.save_begin) for hook in self._savers)
        )


#: Keys of the message hub, which checkpoints contain: sums of all ranks over the run; those that were not shown yet.
#: Both are in the order of ``Stats.vector``.
RUN_TOTALS_KEY, PENDING_TOTALS_KEY = 'label_guard', 'label_guard_unshown'


def add_to_run(message_hub: Any, numbers: List[int]) -> List[int]:
    """Add to the sums of all ranks, also those of a resumed run; return the sums since the start of the run."""
    info = message_hub.runtime_info
    for key in (PENDING_TOTALS_KEY, RUN_TOTALS_KEY):
        totals = info.get(key, ())
        if len(totals) == len(numbers):
            for place, number in enumerate(numbers):
                totals[place] += number
        else:  # a checkpoint of another version
            message_hub.update_info(key, list(numbers))
    sums: List[int] = info[RUN_TOTALS_KEY]
    return sums


def take_pending(message_hub: Any) -> List[int]:
    """Return the sums that no logger has shown yet; from now on they count as shown."""
    numbers = message_hub.runtime_info.get(PENDING_TOTALS_KEY, [])
    message_hub.update_info(PENDING_TOTALS_KEY, [])
    return numbers


def sum_over_ranks(numbers: List[int]) -> List[int]:
    if dist.get_world_size() == 1:
        return numbers
    total = torch.tensor(numbers, dtype=torch.int64)
    dist.all_reduce(total)
    return total.tolist()


def add_numbers(numbers: Sequence[int], added: List[int]) -> List[int]:
    """Add two ``Stats.vector``; an empty one, or one of another length (a checkpoint's), counts as 0."""
    return [a + b for a, b in zip(numbers, added)] if len(numbers) == len(added) else added


def find_skipped_ratio(numbers: List[int]) -> float:
    """Return the largest share of skipped pixels, instances or loss elements, from a ``Stats.vector``."""
    counts = dict(zip(SCALARS + SEEN, numbers))
    parts = (('skipped_pixels', 'pixels'), ('skipped_instances', 'instances'), ('loss_skipped', 'loss_elements'))
    return max(counts[part] / counts[whole] if counts[whole] else 0.0 for part, whole in parts)


#: mmengine copies a scalar's whole history at every update; this many values are enough for any window.
HISTORY = 10_000


def write_scalars(runner: Any, mode: str, numbers: List[int]) -> Dict[str, int]:
    """Set what loggers show next; return tag -> number, without counters that were always 0."""
    scalars, tags = runner.message_hub.log_scalars, {}
    for name, number in zip(SCALARS, numbers):
        # LoggerHook drops the leading mode: without a second one, validation and training would be one curve.
        tag = f'guard/{name}' if mode == 'train' else f'guard/{mode}/{name}'
        key = f'{mode}/{tag}'
        if number or key in scalars:
            # An array of integers is printed without decimals. After a test, mmengine's JSON drops numpy integers.
            empty: Any = np.array([], dtype=object if mode == 'test' else np.int64)
            scalars.setdefault(key, HistoryBuffer(empty, max_length=HISTORY))
            runner.message_hub.update_scalar(key, number)
            tags[tag] = number
    return tags


def show_loss_counts_as_they_are(log_processor: Any) -> None:
    """Keep mmengine from averaging the losses' counts over a window, as it does if a name contains 'loss'."""
    for name in ('guard/loss_skipped', 'guard/loss_remapped'):
        if all(entry['data_src'] != name for entry in log_processor.custom_cfg):
            log_processor.custom_cfg.append(dict(data_src=name, method_name='current'))


class HookAroundTraining(Hook):
    """Base of the hooks that run a training within a context, to notice its end."""

    def around_training(self, runner: Any) -> ContextManager[Any]:
        """Create the context in which the training runs."""
        raise TypeError(f'{type(self).__name__} has no context for a training')

    def before_run(self, runner: Any) -> None:
        loop = get_built_loop(runner)
        if loop is not None:  # else only validation runs
            run_within(loop, self, partial(self.around_training, runner))

    def after_run(self, runner: Any) -> None:
        loop = get_built_loop(runner)
        if loop is not None:
            put_back_run(loop)


def run_within(loop: Any, owner: object, context: Callable[[], ContextManager[Any]]) -> None:
    """Run the loop's next ``run`` within a context.

    mmengine calls no hook when a training ends by an exception, wherever it is raised: loading, a step, validation,
    Ctrl-C. The original ``loop.run`` is restored before the training runs.

    Args:
        loop (BaseLoop): The training loop.
        owner: The caller. Its context for a training that never began is replaced.
        context (Callable): Creates the context. Those of later owners are nested in those of earlier ones.
    """
    run = vars(loop).get('run')
    if not isinstance(run, _RunWithin):
        run = loop.run = _RunWithin(loop)
    run.contexts[owner] = context


def put_back_run(loop: Any) -> None:
    """Restore ``loop.run`` if no training followed: ``runner.val()`` calls ``before_run``, too."""
    run = vars(loop).get('run')
    if isinstance(run, _RunWithin):
        run.put_back()


class _RunWithin:
    """Replacement of ``loop.run`` for one call."""

    def __init__(self, loop: Any) -> None:
        self.contexts: Dict[object, Callable[[], ContextManager[Any]]] = {}
        self._loop, self._run = loop, loop.run
        self._before = vars(loop).get('run')

    def __call__(self) -> Any:
        self.put_back()
        with ExitStack() as stack:
            for context in self.contexts.values():
                stack.enter_context(context())
            return self._run()

    def put_back(self) -> None:
        if self._before is None:
            del self._loop.run  # reveals the method of the class
        else:
            self._loop.run = self._before
