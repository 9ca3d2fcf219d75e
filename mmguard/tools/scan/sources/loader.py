"""A few label maps as the config's own loader returns them, beside what the scan makes of them."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from random import Random
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, TypeVar

import numpy as np

from mmguard.config.classes import name_of
from mmguard.findings.facts import LoaderFacts
from mmguard.labels.space import value_counts
from mmguard.text.failures import words_of
from mmguard.tools.scan.faults import printable
from mmguard.tools.scan.read import read_map
from mmguard.tools.scan.record import MapItem
from mmguard.tools.scan.settings import MapSettings
from mmguard.tools.storage.urls import masked, without_secrets

#: So many files are decoded once more: the scan must not take longer for it.
SAMPLE = 4

_Any = TypeVar('_Any')
Step = Callable[[Dict[str, Any]], Optional[Dict[str, Any]]]


def spread(items: Sequence[_Any], most: int = SAMPLE) -> List[_Any]:
    """A few of many, one of each part, the same ones each time.

    Example:
        >>> spread('abc'), len(spread(range(1000)))
        (['a', 'b', 'c'], 4)
    """
    if len(items) <= most:
        return list(items)
    random = Random(0)
    part = len(items) / most
    return [items[int(part * (number + random.random()))] for number in range(most)]


def ask_loader(
    infos: Sequence[Mapping[str, Any]],
    pipeline: Sequence[Mapping[str, Any]],
    settings: MapSettings,
    root: Optional[str] = None,
) -> LoaderFacts:
    """Run the pipeline up to the loading of the annotations, and compare with what the scan makes of the values.

    ``infos`` is what the data set's class hands to its pipeline, of the sampled files.
    """
    try:
        with warnings.catch_warnings():  # each edit that is tried would say them again
            warnings.simplefilter('ignore')
            steps = _up_to_the_loader(pipeline)
    except Exception as error:  # a class of the user's may raise anything
        return LoaderFacts(unknown=f'its pipeline cannot be built ({words_of(error, 160)})')
    if not steps:
        return LoaderFacts(unknown='no transform of its pipeline loads annotations')
    facts = LoaderFacts()
    settings = replace(settings, guard_map=())  # what a guard maps comes after the loader
    for info in infos:
        _compare(facts, info, steps, settings, root)
    return facts


def _compare(
    facts: LoaderFacts, info: Mapping[str, Any], steps: Sequence[Step], settings: MapSettings, root: Optional[str]
) -> None:
    path = without_secrets(str(info['seg_map_path']))
    record = read_map(MapItem(path), settings, np.array(settings.invalid_values()))
    if record.fault:
        return  # another rule names the files that cannot be read
    name = printable(path, root)
    table = settings.table()
    counted: Dict[int, int] = {}
    for value, count in record.as_loaded.items():
        counted[table[value]] = counted.get(table[value], 0) + count
    try:
        results: Any = copy.deepcopy(dict(info))
        for step in steps:
            results = step(results)
        loaded = value_counts(np.asarray(results['gt_seg_map']))
    except Exception as error:  # as above
        facts.failed[name] = masked(words_of(error, 240))
        return
    facts.files += 1
    if loaded != counted:
        facts.differing[name] = (dict(sorted(loaded.items())), dict(sorted(counted.items())))


def _up_to_the_loader(pipeline: Sequence[Mapping[str, Any]]) -> List[Step]:
    """The transforms, built; images are not decoded. None where no transform loads annotations."""
    from mmseg.registry import TRANSFORMS

    steps: List[Step] = []
    for transform in pipeline:
        name = name_of(transform.get('type'))
        loads = 'Load' in name
        if loads and 'Annotation' not in name:
            continue
        steps.append(TRANSFORMS.build(copy.deepcopy(dict(transform))))
        if loads:
            return steps
    return []
