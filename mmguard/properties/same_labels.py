"""Training and validation see the same labels: one file, through the label steps of both pipelines."""

from __future__ import annotations

import copy
import os
import tempfile
from typing import Any, Dict, List, Optional, Set, Tuple

import numpy as np
from PIL import Image

from mmguard.properties.moves_together import look
from mmguard.properties.program import VOID, Program, seed_all, spread
from mmguard.properties.result import Result, Unavailable, broken, holds, not_tested

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
            results += _check_names(subject, one, other)
            values = sorted(_values_of(one) | _values_of(other))[:VALUES]
            if values:
                results.append(_compare_values(program, subject, one, other, values))
            elif not results:
                results.append(_compare_categories(subject, one, other))
    return results


def _check_names(subject: str, train: Any, val: Any) -> List[Result]:
    ours, theirs = (tuple((getattr(one, 'metainfo', None) or {}).get('classes') or ()) for one in (train, val))
    if not ours or not theirs or ours == theirs:
        return []
    at = next((n for n, pair in enumerate(zip(ours, theirs)) if pair[0] != pair[1]), min(len(ours), len(theirs)))
    names = [one[at] if at < len(one) else 'no class' for one in (ours, theirs)]
    evidence = f'label {at} is {names[0]} in the training and {names[1]} in the validation'
    return [broken(f'{subject}, class names', evidence)]


def _compare_categories(subject: str, train: Any, val: Any) -> Result:
    """Compare names of categories -> labels, where the data sets say them."""
    ours, theirs = labels_by_name(train), labels_by_name(val)
    common = sorted(set(ours) & set(theirs))
    if not common:
        return not_tested(subject, 'its data sets do not say which category gets which label')
    other = [name for name in common if ours[name] != theirs[name]]
    if other:
        name = other[0]
        evidence = f'{name} is label {ours[name]} in the training and label {theirs[name]} in the validation'
        return broken(subject, evidence)
    return holds(subject, categories=len(common))


def labels_by_name(dataset: Any) -> Dict[str, int]:
    """Return the label of each category of a COCO file by its name in the file."""
    api: Any = getattr(dataset, 'coco', None)
    labels = getattr(dataset, 'cat2label', None)
    if isinstance(labels, dict) and hasattr(api, 'cats'):
        return {str(api.cats[number]['name']): label for number, label in labels.items() if number in api.cats}
    names = (getattr(dataset, 'metainfo', None) or {}).get('classes') or ()
    return {str(name): label for label, name in enumerate(names)}


# ---- label maps


def _values_of(dataset: Any) -> Set[int]:
    """Return the values in a few label files; empty where they are not images of one channel."""
    found: Set[int] = set()
    for index in spread(len(dataset), FILES):
        path = dataset.get_data_info(index).get('seg_map_path')
        if not isinstance(path, str) or not os.path.isfile(path) or not path.endswith('.png'):
            return set()
        with Image.open(path) as image:
            if image.mode not in ('L', 'P'):
                return set()
            found.update(np.unique(np.asarray(image)).tolist())
    return found


def _compare_values(program: Program, subject: str, train: Any, val: Any, values: List[int]) -> Result:
    table: Dict[int, Tuple[Optional[int], Optional[int]]] = {}
    for value in values:
        table[value] = label_of(program, train, value), label_of(program, val, value)
        if program.seconds_left() < 0:
            break
    known = {value: pair for value, pair in table.items() if None not in pair}
    if not known:
        return not_tested(subject, 'its pipelines do not load a label map of one value')
    wrong = {value: pair for value, pair in known.items() if pair[0] != pair[1]}
    data = {str(value): list(pair) for value, pair in known.items()}
    if not wrong:
        return holds(subject, labels=data)
    words = [
        f'{value} is {_word(one)} in the training and {_word(other)} in the validation'
        for value, (one, other) in wrong.items()
    ]
    return broken(subject, f'value {"; ".join(words[:3])}', labels=data)


def _word(label: Optional[int]) -> str:
    return 'ignored' if label == VOID else f'label {label}'


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
                seen = look('', dataset.pipeline(info), ())
            except Exception:  # another property names it
                return None
            if seen is not None and seen.label is not None:
                values, counts = np.unique(seen.label[seen.label != VOID], return_counts=True)
                return int(values[counts.argmax()]) if len(values) else VOID
    return None
