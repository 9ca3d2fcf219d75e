"""Access to the data sets inside wrappers, and to the steps of their pipelines while samples are loaded."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any, Callable, Dict, Iterable, Iterator, List, Tuple

import numpy as np
import torch

from mmguard.config.agreement import has_open_vocabulary
from mmguard.config.read import ReadConfig
from mmguard.files.regular import read_regular
from mmguard.labels.rules import apply_label_map

#: Function that takes a step and its input, runs the step, and returns the input of the next step.
OnStep = Callable[[Any, Any], Any]
#: Transforms that only run other transforms, on the same sample.
_OPEN = ('Compose', 'RandomApply', 'RandomChoice')


def seed_all(seed: int) -> None:
    """Seed the random generators of Python, NumPy and PyTorch, which transforms and models use."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch.manual_seed(seed)


def select_indices(length: int, limit: int) -> List[int]:
    """Return up to ``limit`` indices below ``length``, evenly spread, beginning with 0.

    Example:
        >>> select_indices(10, 3)
        [0, 3, 6]
    """
    return [number * length // limit for number in range(limit)] if length > limit else list(range(length))


def walk_datasets(dataset: Any) -> Iterator[Any]:
    """Yield a data set, and all data sets that it wraps."""
    yield dataset
    for inner in getattr(dataset, 'datasets', None) or [getattr(dataset, 'dataset', None)]:
        if inner is not None:
            yield from walk_datasets(inner)


def find_innermost(dataset: Any) -> List[Any]:
    """Return the innermost data sets, which do not wrap other data sets."""
    return [one for one in walk_datasets(dataset) if not hasattr(one, 'datasets') and not hasattr(one, 'dataset')]


def get_class_names(dataset: Any) -> Tuple[str, ...]:
    """Return the class names of a data set; empty if it has none."""
    names = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


def find_conflict(config: ReadConfig, leaves: Iterable[Any]) -> str:
    """Describe the first label with different class names in two data sets of a training, or return ''."""
    known: Dict[int, str] = {}
    for leaf in () if has_open_vocabulary(config) else leaves:
        for name, label in read_labels_by_name(leaf).items():
            if known.setdefault(label, name) != name:
                place = leaf.ann_file or leaf.data_root or type(leaf).__name__
                return f'label {label} is {known[label]} in one data set and {name} in {place}'
    return ''


def read_labels_by_name(dataset: Any) -> Dict[str, int]:
    """Return {class name: label} as numbered by the class list, or by the annotation file of a COCO data set."""
    known = {name: label for label, name in enumerate(get_class_names(dataset))}
    ids = getattr(dataset, 'cat2label', None)
    if isinstance(ids, dict) and not set(ids) <= set(known):  # XMLDataset has names as keys
        with contextlib.suppress(Exception):  # a file in another form, or too large
            categories = json.loads(read_regular(dataset.ann_file, 64 << 20))['categories']
            known = {str(one['name']): ids[one['id']] for one in categories if one['id'] in ids}
    for step in getattr(dataset.pipeline, 'transforms', ()):
        if type(step).__name__ == 'GuardInstanceLabels':
            known = {name: apply_label_map(step.rule.label_map, label) for name, label in known.items()}
    return known


def walk_objects(leaf: Any, limit: int) -> Iterator[Dict[str, Any]]:
    """Yield the annotated objects of up to ``limit`` samples, without running a pipeline."""
    for index in select_indices(len(leaf), limit if hasattr(leaf, 'get_data_info') else 0):
        yield from leaf.get_data_info(index).get('instances') or ()


class WatchedStep:
    """Proxy of a pipeline step: has the attributes of the step, but calling it runs ``on_step(step, results)``."""

    def __init__(self, step: Any, on_step: OnStep) -> None:
        self._step = step
        self._on_step = on_step

    def __call__(self, results: Any) -> Any:
        return self._on_step(self._step, results)

    def __getattr__(self, name: str) -> Any:
        if name.startswith('__'):
            raise AttributeError(name)
        return getattr(self._step, name)


@contextlib.contextmanager
def watch_steps(datasets: Iterable[Any], on_step: OnStep) -> Iterator[None]:
    """Call ``on_step`` for each step of the data sets' pipelines, and restore the pipelines afterwards.

    The inner steps of a step in ``_OPEN`` are watched. Any other step with inner steps (``KeyMapper``) counts as one
    step, because it may pass another sample to its inner steps.
    """
    with contextlib.ExitStack() as undo:

        def watch(owner: Any, name: str) -> None:
            held: Any = getattr(owner, name, None)
            if isinstance(getattr(held, 'transforms', None), list):
                watch(held, 'transforms')
            elif isinstance(held, list) and all(map(callable, held)):
                undo.callback(setattr, owner, name, held)
                setattr(owner, name, list(map(wrap, held)))

        def wrap(step: Any) -> Any:
            if not any(base.__name__ in _OPEN for base in type(step).__mro__):
                return WatchedStep(step, on_step)
            watch(step, 'transforms')
            return step

        for dataset in datasets:
            watch(dataset, 'pipeline')
        yield
