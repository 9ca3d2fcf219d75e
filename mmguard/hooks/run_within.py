"""What begins and ends with a training, however that ends."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any, Callable, ContextManager, Dict

from mmengine.hooks import Hook

from mmguard.hooks.discovery import built_train_loop


class HookAroundTraining(Hook):
    """A hook of which something begins and ends with a training."""

    def around_training(self, runner: Any) -> ContextManager[Any]:
        """Entered before anything of the training is run."""
        raise TypeError(f'{type(self).__name__} begins and ends nothing with a training')

    def before_run(self, runner: Any) -> None:
        loop = built_train_loop(runner)
        if loop is not None:  # else only validation runs
            run_within(loop, self, partial(self.around_training, runner))

    def after_run(self, runner: Any) -> None:
        loop = built_train_loop(runner)
        if loop is not None:
            put_back_run(loop)


def run_within(loop: Any, owner: object, context: Callable[[], ContextManager[Any]]) -> None:
    """Runs the loop's next ``run`` within a context.

    mmengine calls no hook when a training ends by an exception, wherever it comes from: loading, a step, validation,
    Ctrl-C. ``loop.run`` is its own again before anything of the training is run.

    Args:
        loop (BaseLoop): Of the training.
        owner: Who asks. What it asked for before a training that never began is replaced.
        context (Callable): Makes the context. Those of later owners are within those of earlier ones.
    """
    run = vars(loop).get('run')
    if not isinstance(run, _RunWithin):
        run = loop.run = _RunWithin(loop)
    run.contexts[owner] = context


def put_back_run(loop: Any) -> None:
    """Undoes :func:`run_within` where no training came of it: ``runner.val()`` calls ``before_run``, too."""
    run = vars(loop).get('run')
    if isinstance(run, _RunWithin):
        run.put_back()


class _RunWithin:
    """Stands in for ``loop.run``, for one call."""

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
            del self._loop.run  # the method of the class is there again
        else:
            self._loop.run = self._before
