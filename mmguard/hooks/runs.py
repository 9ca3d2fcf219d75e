"""The log shared by the hooks of a run, and contexts around a training."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any, Callable, ContextManager, Dict, Optional
from weakref import WeakKeyDictionary

from mmengine import dist
from mmengine.hooks import Hook

from mmguard.hooks.discovery import built_loop
from mmguard.log.run_log import MAX_MB, NAME, RunLog
from mmguard.text import visible

_LOGS: WeakKeyDictionary[Any, RunLog] = WeakKeyDictionary()


def run_log_of(runner: Any, out_file: Optional[str] = NAME, max_mb: float = MAX_MB) -> RunLog:
    """Return the log of a run; the first caller decides the name of the file and its limit."""
    if runner not in _LOGS:
        _LOGS[runner] = RunLog(
            runner.log_dir,
            dist.get_rank(),
            dist.get_world_size(),
            config=runner.cfg.filename,
            out_file=out_file,
            max_mb=max_mb,
        )
    return _LOGS[runner]


def warn_of_problems(runner: Any) -> None:
    """Warn of log files that cannot be written; each once."""
    for problem in _LOGS[runner].take_problems():
        runner.logger.warning(f'guard: {visible(problem)}')


def train_place(runner: Any, batch_idx: int) -> Dict[str, int]:
    """Return the iteration as the console counts it: over the loop, or in the epoch if logs go by epoch."""
    loop = runner.train_loop
    if runner.log_processor.by_epoch:
        return {'iter': batch_idx + 1, 'epoch': loop.epoch + 1, 'step': loop.iter + 1}
    return {'iter': loop.iter + 1}


class HookAroundTraining(Hook):
    """A hook with a context around the whole training."""

    def around_training(self, runner: Any) -> ContextManager[Any]:
        """Create the context in which the training runs."""
        raise TypeError(f'{type(self).__name__} has no context for a training')

    def before_run(self, runner: Any) -> None:
        loop = built_loop(runner)
        if loop is not None:  # else only validation runs
            run_within(loop, self, partial(self.around_training, runner))

    def after_run(self, runner: Any) -> None:
        loop = built_loop(runner)
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
