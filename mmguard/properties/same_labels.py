"""Training and validation see the same labels: one file, through the label steps of both pipelines."""

from __future__ import annotations

import copy
import os
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np
from PIL import Image

from mmguard.properties.moves_together import look
from mmguard.properties.program import VOID, Program, seed_all, spread
from mmguard.properties.result import Result, Unavailable, broken, holds, not_tested, setting

#: Label files whose values are taken, and how many values are tried.
FILES, VALUES = 6, 24
#: Side of the images that are written for it.
SIDE = 256
#: Draws of random steps.
TRIES = 3


def check(program: Program) -> List[Result]:
    """Compare class names, and what becomes of each value, in the data sets of both splits."""
    try:
        train, val = program.leaves('train'), program.leaves('val')
    except Unavailable:
        raise
    except Exception as error:
        raise Unavailable(f'a data set cannot be built: {error}') from error
    results = []
    for number, one in enumerate(train):
        for other in val:
            subject = type(one).__name__ if len(train) == 1 else f'{type(one).__name__} {number}'
            differing = compare_names(names_of(one), names_of(other), 'in the training', 'in the validation')
            results += [broken(f'{subject}, class names', differing)] if differing else []
            values = sorted(_values_of(one) | _values_of(other))[:VALUES]
            if values:
                results.append(_compare_values(program, subject, one, other, values))
            elif not differing:
                results.append(_compare_categories(subject, one, other))
    return results


def names_of(dataset: Any) -> Tuple[str, ...]:
    """Return what a data set calls its classes; empty where it does not say it."""
    names = (getattr(dataset, 'metainfo', None) or {}).get('classes')
    return tuple(map(str, names)) if isinstance(names, (list, tuple)) else ()


def compare_names(ours: Sequence[str], theirs: Sequence[str], here: str, there: str) -> str:
    """Say which is the first label with two names; empty: no label has two, or one side has no names."""
    if not ours or not theirs or tuple(ours) == tuple(theirs):
        return ''
    at = next((n for n, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
    names = [one[at] if at < len(one) else 'no class' for one in (ours, theirs)]
    return f'label {at} is {names[0]} {here} and {names[1]} {there}'


def _compare_categories(subject: str, train: Any, val: Any) -> Result:
    """Compare names of categories -> labels, where the data sets say them."""
    ours, theirs = labels_by_name(train), labels_by_name(val)
    common = sorted(set(ours) & set(theirs))
    if not common:
        return not_tested(subject, 'its data sets do not say which category gets which label')
    for name in common:
        if ours[name] != theirs[name]:
            evidence = f'{name} is label {ours[name]} in the training and label {theirs[name]} in the validation'
            return broken(subject, evidence)
    return holds(subject, '', dict(categories=len(common)))


def labels_by_name(dataset: Any) -> Dict[str, int]:
    """Return the label of each category of a COCO file by its name in the file."""
    api: Any = getattr(dataset, 'coco', None)
    labels = getattr(dataset, 'cat2label', None)
    if isinstance(labels, dict) and hasattr(api, 'cats'):
        return {str(api.cats[number]['name']): label for number, label in labels.items() if number in api.cats}
    return {name: label for label, name in enumerate(names_of(dataset))}


def read_label_file(info: Dict[str, Any]) -> Optional[np.ndarray]:
    """Return the values of the label map of a sample; ``None`` where it is not an image of one channel, 8 bits deep."""
    path = info.get('seg_map_path')
    if not isinstance(path, str) or not os.path.isfile(path) or not path.endswith('.png'):
        return None
    with Image.open(path) as image:
        return np.asarray(image) if image.mode in ('L', 'P') else None


def _values_of(dataset: Any) -> Set[int]:
    maps = [read_label_file(dataset.get_data_info(index)) for index in spread(len(dataset), FILES)]
    return {value for one in maps if one is not None for value in np.unique(one).tolist()}


def _compare_values(program: Program, subject: str, train: Any, val: Any, values: List[int]) -> Result:
    table: Dict[int, Tuple[Optional[int], Optional[int]]] = {}
    for value in values:
        table[value] = label_of(program, train, value), label_of(program, val, value)
        if program.seconds_left() < 0:
            break
    known = {value: pair for value, pair in table.items() if None not in pair}
    if not known:
        return not_tested(subject, 'its pipelines do not load a label map of one value')
    data = dict(labels={str(value): list(pair) for value, pair in known.items()})
    words = [
        'value {} is {} in the training and {} in the validation'.format(
            value, *('ignored' if label == VOID else f'label {label}' for label in pair)
        )
        for value, pair in known.items()
        if pair[0] != pair[1]
    ]
    if words:
        return broken(subject, '; '.join(words[:3]), data)
    ignored = [value for value, pair in known.items() if pair[0] == VOID != value]
    unused = [one for label, one in enumerate(names_of(train)) if label not in {pair[0] for pair in known.values()}]
    if ignored and unused and len(set(known) - {VOID}) == len(names_of(train)):
        return setting(subject, f'value {ignored[0]} is ignored, and no value becomes {unused[0]}', data)
    return holds(subject, '', data)


def label_of(program: Program, dataset: Any, value: int) -> Optional[int]:
    """Return what a pipeline makes of a label map of one value; ``None`` where it does not load it."""
    with tempfile.TemporaryDirectory() as folder, program.scope():
        image, label = os.path.join(folder, 'image.png'), os.path.join(folder, 'label.png')
        noise = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
        Image.fromarray(noise).save(image)
        Image.fromarray(np.full((SIDE, SIDE), value, np.uint8)).save(label)
        for seed in range(TRIES):
            info = copy.deepcopy(dataset.get_data_info(0))
            info.update(img_path=image, seg_map_path=label, sample_idx=0)
            seed_all(seed)
            try:
                seen = look('', dataset.pipeline(info))
            except Exception:  # another property names it
                return None
            if seen and 'label map' in seen[0].figures:
                found = seen[0].figures['label map']
                values, counts = np.unique(found[found != VOID], return_counts=True)
                return int(values[counts.argmax()]) if len(values) else VOID
    return None
