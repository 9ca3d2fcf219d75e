"""Data sets inside their wrappers, and observation of their pipelines' steps while samples are loaded."""

from __future__ import annotations

import contextlib
import random
from typing import Any, Callable, Dict, Iterator, List, Tuple

import numpy as np
import torch

#: Called after a step with its name and output; returns the input of the next step.
OnStep = Callable[[str, Any], Any]


def seed_all(seed: int) -> None:
    """Seed the generators that transforms and models use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def select_indices(length: int, limit: int) -> List[int]:
    """Return up to ``limit`` indices, evenly spread from the first one on.

    Example:
        >>> select_indices(10, 3)
        [0, 3, 6]
    """
    return [number * length // limit for number in range(limit)] if length > limit else list(range(length))


def walk_datasets(dataset: Any) -> Iterator[Any]:
    """Walk a data set and its wrapped data sets."""
    yield dataset
    for inner in getattr(dataset, 'datasets', None) or [getattr(dataset, 'dataset', None)]:
        if inner is not None:
            yield from walk_datasets(inner)


def find_innermost(dataset: Any) -> List[Any]:
    """Return the data sets inside of all wrappers."""
    return [one for one in walk_datasets(dataset) if not hasattr(one, 'datasets') and not hasattr(one, 'dataset')]


def get_class_names(dataset: Any) -> Tuple[str, ...]:
    """Return the class names of a data set; empty if it has none."""
    names = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


def walk_objects(leaf: Any, limit: int) -> Iterator[Dict[str, Any]]:
    """Walk the objects in the annotations of up to ``limit`` samples; no pipeline is run."""
    for index in select_indices(len(leaf), limit if hasattr(leaf, 'get_data_info') else 0):
        yield from leaf.get_data_info(index).get('instances') or ()


class WatchedStep:
    """Transform that something else calls; otherwise it behaves as the wrapped transform.

    Args:
        transform (callable): A step of a pipeline.
        call (callable): Takes the transform and its input, and returns the input of the next step.
    """

    def __init__(self, transform: Any, call: Callable[[Any, Any], Any]) -> None:
        self._transform = transform
        self._call = call

    def __call__(self, results: Any) -> Any:
        return self._call(self._transform, results)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self._transform, name)


@contextlib.contextmanager
def watch_steps(dataset: Any, on_step: OnStep) -> Iterator[List[str]]:
    """Watch all steps of a data set and its wrapped data sets, and restore them afterwards.

    Args:
        dataset (Dataset): Wrappers included.
        on_step (callable): Called after each step, with its name and output.

    Yields:
        list[str]: the names of the steps that raised, the innermost first.
    """
    failed: List[str] = []

    def call(transform: Any, results: Any) -> Any:
        name = type(transform).__name__
        try:
            results = transform(results)
        except Exception:
            failed.append(name)
            raise
        return on_step(name, results)

    with contextlib.ExitStack() as undo:

        def watch(owner: Any, name: str) -> None:
            """Replace a list of transforms held by an attribute with watched steps."""
            held: Any = getattr(owner, name, None)
            if isinstance(getattr(held, 'transforms', None), list):
                watch(held, 'transforms')
            elif isinstance(held, list) and all(map(callable, held)):
                for transform in held:
                    for inner in ('transforms', 'pre_transform'):
                        if inner in getattr(transform, '__dict__', ()):
                            watch(transform, inner)
                undo.callback(setattr, owner, name, held)
                # RandomChoice holds lists of Compose, which are steps of their own.
                setattr(owner, name, [WatchedStep(one, call) for one in held])

        for holder in walk_datasets(dataset):
            watch(holder, 'pipeline')
        yield failed
