"""Steps of the pipelines of a data set, watched while samples are loaded."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Iterator, List, Optional

#: Called after a step with its name and what it left; returns what the next one gets.
OnStep = Callable[[str, Any], Any]
#: Attributes of transforms that hold other transforms.
_INNER = ('transforms', 'pre_transform')


class Step:
    """Transform that reports what it left; in all else it is the transform.

    Args:
        transform (callable): It.
        on_step (callable): Called after it.
        failed (list): Gets the name of the innermost step that raised.
    """

    def __init__(self, transform: Any, on_step: OnStep, failed: List[str]) -> None:
        self._transform = transform
        self._on_step = on_step
        self._failed = failed

    def __call__(self, results: Any) -> Any:
        name = type(self._transform).__name__
        try:
            results = self._transform(results)
        except Exception:
            if not self._failed:
                self._failed.append(name)
            raise
        return self._on_step(name, results)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self._transform, name)


@contextlib.contextmanager
def watched_steps(dataset: Any, on_step: OnStep, failed: Optional[List[str]] = None) -> Iterator[None]:
    """Watch all steps of a data set and of what it wraps; afterwards they are as before.

    Args:
        dataset (Dataset): Wrappers included.
        on_step (callable): Called after each step, with its name and what it left.
        failed (list, optional): Gets the name of the step that raised.
    """
    names = [] if failed is None else failed
    undo: List[Callable[[], None]] = []
    for holder in _holders(dataset):
        _watch(holder, 'pipeline', on_step, names, undo)
    try:
        yield
    finally:
        for restore in reversed(undo):
            restore()


def _holders(dataset: Any) -> Iterator[Any]:
    """Walk a data set and what it wraps."""
    yield dataset
    for inner in getattr(dataset, 'datasets', None) or [getattr(dataset, 'dataset', None)]:
        if inner is not None:
            yield from _holders(inner)


def _watch(owner: Any, name: str, on_step: OnStep, failed: List[str], undo: List[Callable[[], None]]) -> None:
    """Put watched steps into the list of transforms that an attribute holds."""
    held: Any = getattr(owner, name, None)
    if hasattr(held, 'transforms') and isinstance(held.transforms, list):
        _watch(held, 'transforms', on_step, failed, undo)
    elif isinstance(held, list) and all(callable(one) for one in held):
        for transform in held:
            for inner in _INNER:
                if hasattr(transform, '__dict__') and inner in vars(transform):
                    _watch(transform, inner, on_step, failed, undo)
        undo.append(lambda: setattr(owner, name, held))
        # RandomChoice holds lists of Compose, which are steps of their own.
        setattr(owner, name, [Step(one, on_step, failed) for one in held])
