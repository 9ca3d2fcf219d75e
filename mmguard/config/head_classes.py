"""Numbers of classes in heads and in data sets, which must agree; :mod:`mmguard.labels.spaces` has the valid labels."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.config.parts import (
    Part,
    find_datasets,
    find_heads,
    get_class_names,
    get_metainfo,
    says_classes,
)
from mmguard.config.read import ReadConfig
from mmguard.labels.heads import OPEN_VOCABULARY, STUFF, THINGS, takes_labels

#: Heads that count the classes of stuff maps, which the data set does not list.
STUFF_MAPS = ('FusedSemanticHead', 'SCNetSemanticHead')


class Count(NamedTuple):
    """A number of classes (``'all'``, ``'things'`` or ``'stuff'``) that a config sets for a head, and its path."""

    path: str
    value: int
    kind: str
    head: Part


def find_class_counts(config: ReadConfig) -> List[Count]:
    """Return the numbers of classes that must equal the data set's."""
    found = []
    for head in find_heads(config):
        if not takes_labels(head) or head.is_a(*STUFF_MAPS) or head.config.get('class_agnostic') is True:
            continue
        for key, kind in (('num_classes', 'all'), (THINGS, 'things'), (STUFF, 'stuff')):
            value = head.config.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                found.append(Count(head.place(key), value, kind, head))
    return found


def count_classes(head: Optional[Part]) -> Optional[int]:
    """Return the number of classes of a head, without background and "no object"; ``None`` if it does not set one."""
    if head is None:
        return None
    things, stuff = head.config.get(THINGS), head.config.get(STUFF)
    if isinstance(things, int):
        return things + (stuff if isinstance(stuff, int) else 0)
    value = head.config.get('num_classes')
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def count_data_classes(dataset: Part) -> Dict[str, int]:
    """Count the classes of a data set by kind: ``'all'``, and ``'things'`` and ``'stuff'`` if it distinguishes them."""
    classes = get_class_names(dataset)
    if not classes:  # unknown, or taken from the file
        return {}
    found = {'all': len(classes)}
    for kind, key in (('things', 'thing_classes'), ('stuff', 'stuff_classes')):
        names = read_part_of_classes(dataset, key)
        # Heads treat labels below the number of things as things.
        if (
            isinstance(names, (list, tuple))
            and names
            and (kind == 'stuff' or not has_stuff_among_things(classes, names))
        ):
            found[kind] = len(names)
    return found


def read_part_of_classes(dataset: Part, key: str) -> Any:
    """Return ``thing_classes`` or ``stuff_classes`` as :func:`get_class_names` reads the whole list; ``None`` if
    missing."""
    metainfo = dataset.config.get('metainfo')
    names = metainfo.get(key) if isinstance(metainfo, dict) else None
    return get_metainfo(dataset).get(key) if names is None and not says_classes(dataset) else names


def has_stuff_among_things(classes: Sequence[str], things: Any) -> bool:
    """True if the thing classes do not all come first in a class list.

    Example:
        >>> has_stuff_among_things(['car', 'sky', 'cat'], ['car', 'cat'])
        True
    """
    listed = isinstance(things, (list, tuple)) and 0 < len(things) < len(classes) and set(things) <= set(classes)
    return listed and set(classes[: len(things)]) != set(things)


def lists_untrained_classes(dataset: Part) -> bool:
    """Return True if a data set lists classes that are not trained, as tracking benchmarks do."""
    return dataset.is_a('BaseVideoDataset') and dataset.split != 'train' and not says_classes(dataset)


def has_open_vocabulary(config: ReadConfig) -> bool:
    """Return True if the model takes class names as text, so that it can be tested on any data set."""
    return any(head.is_a(*OPEN_VOCABULARY) for head in find_heads(config))


def find_training_datasets(config: ReadConfig) -> List[Part]:
    """Return the training data sets, or if a config has none, the test data sets."""
    found = [dataset for dataset in find_datasets(config) if not lists_untrained_classes(dataset)]
    return [dataset for dataset in found if dataset.split == 'train'] or found


def find_joined_lists(config: ReadConfig) -> List[Tuple[Part, List[str]]]:
    """Return the data sets of a training with their class names if these differ; else an empty list."""
    train = [dataset for dataset in find_datasets(config) if dataset.split == 'train']
    found = [(dataset, names) for dataset in train for names in [get_class_names(dataset)] if names]
    return found if any(names != found[0][1] for _, names in found) else []


def find_mismatched_counts(config: ReadConfig) -> Iterator[Tuple[Count, int, Part]]:
    """Yield each number of classes that differs from the data set's, with the right number and the data set."""
    data = [(dataset, count_data_classes(dataset)) for dataset in find_training_datasets(config)]
    for count in find_class_counts(config):
        for dataset, numbers in data:
            expected = numbers.get(count.kind, numbers.get('all') if count.kind == 'things' else None)
            if count.kind == 'all' and config.framework == 'mmdet':
                expected = numbers.get('things', expected)
            if expected is None or count.value == expected:
                continue
            if count.kind == 'things' and 'things' not in numbers and _adds_up(count.head.config, expected):
                continue
            if config.framework == 'mmdet' and count.value == expected + 1 and count.kind == 'all':
                continue  # MG202 reports it, with the reason
            if count.value == 1 and expected == 2 and config.framework == 'mmseg':
                continue  # right if one sigmoid channel separates two classes; MG215 reports a softmax
            yield count, expected, dataset
            break


def _adds_up(head: dict, expected: int) -> bool:
    return head.get('num_things_classes', 0) + (head.get('num_stuff_classes') or 0) == expected
