"""Forbidden outcomes, judged on what the loader gives after an edit."""

from __future__ import annotations

from collections import Counter
from typing import Dict, List, Sequence, Set

import numpy as np
from meanings import Boxes, Means
from trained import Trained

from mmguard.findings.views import normalize_name

#: Pixels that a box may be off: VOC counts from 1, texts are rounded.
OFF = 1.5


def harm_to_maps(means: Means, before: Trained, after: Trained) -> List[str]:
    """List the harm that an edit did to values whose meaning is known."""
    pairs = _pairs(before, after)
    found = []
    gone = [name for name, (stored, _) in before.maps.items() if not _is_same_size(stored, name, after)]
    if gone:
        found.append(f'files are trained no longer, or in another size: {_listed(gone)}')
    for value in means.void:
        labels = {label for (stored, label) in pairs if stored == value and _is_trained(label, after)}
        if labels:
            found.append(f'void is trained: {value} as {_listed(labels)}')
    taught = []
    for group in means.classes:
        values = group if isinstance(group, tuple) else (group,)
        counts: Counter = Counter()
        for (stored, label), count in pairs.items():
            if stored in values:
                counts[label] += count
        if not counts:
            continue
        ignored = [label for label in counts if label == after.ignore_index]
        if ignored:
            found.append(f'a class is ignored: {_listed(values)}')
        labels = {label for label in counts if _is_trained(label, after)}
        if not labels and not ignored:
            found.append(f'a class is not trained: {_listed(values)}')
        if len(labels) > 1:
            found.append(f'a class is torn: {_listed(values)} as {_listed(labels)}')
        taught += sorted(labels)[:1]
    if len(set(taught)) < len(taught):
        found.append(f'classes became one: {taught}')
    elif taught != sorted(taught):
        found.append(f'classes are swapped: {taught}')
    return found


def _pairs(before: Trained, after: Trained) -> Counter:
    """(value as it was stored, label as it is trained) -> pixels."""
    pairs: Counter = Counter()
    for name, (stored, _) in before.maps.items():
        if not _is_same_size(stored, name, after):
            continue
        both = np.stack([stored.ravel(), after.maps[name][1].ravel()])
        columns, counts = np.unique(both, axis=1, return_counts=True)
        pairs.update({(a, int(b)): n for a, b, n in zip(*columns.tolist(), counts.tolist())})
    return pairs


def _is_same_size(stored: np.ndarray, name: str, after: Trained) -> bool:
    return name in after.maps and after.maps[name][1].shape == stored.shape


def _is_trained(label: int, found: Trained) -> bool:
    return 0 <= label < found.num_classes and label != found.ignore_index


def _listed(values: object) -> str:
    shown = sorted(values)  # type: ignore[call-overload]
    return ', '.join(map(str, shown[:6])) + (', ...' if len(shown) > 6 else '')


def missing_classes(before: Trained, after: Trained) -> List[str]:
    """Whether fewer classes have labels than before, or fewer elements teach one."""
    if len(after.counts) < len(before.counts):
        gone = set(before.counts) - set(after.counts)
        return [f'{len(before.counts)} classes had labels, {len(after.counts)} have: {_listed(gone)} gone']
    if sum(after.counts.values()) < sum(before.counts.values()):
        return [f'{sum(before.counts.values())} elements were trained, {sum(after.counts.values())} are']
    return []


def harm_to_boxes(true: Boxes, after: Trained) -> List[str]:
    """List the harm that an edit did to boxes: some are trained where nothing is, or are not trained."""
    found = []
    for (name, boxes), wanted in zip(sorted(_all_pictures(after, len(true)).items()), true):
        left = list(wanted)
        for box in boxes:
            near = next((one for one in left if np.allclose(one, box, rtol=0, atol=OFF)), None)
            if near is None:
                found.append(f'{name}: nothing is at {[round(float(part), 1) for part in box]}')
            else:
                left.remove(near)
        found += [f'{name}: the object at {list(box)} is not trained' for box in left]
    return found[:1] + ([f'and {len(found) - 1} more boxes'] if len(found) > 1 else [])


def _all_pictures(found: Trained, number: int) -> Dict[str, Sequence[Sequence[float]]]:
    """With those that have no object: pictures are numbered, in four digits or in six."""
    digits = len(next(iter(found.boxes), '0000'))
    return {f'{place:0{digits}}': found.boxes.get(f'{place:0{digits}}', []) for place in range(number)}


def harm_to_names(before: Trained, after: Trained) -> List[str]:
    """Objects of one name that have several now, or that of another kind."""
    became: Dict[str, Set[str]] = {}
    for one, name in before.names.items():
        if one in after.names:
            became.setdefault(normalize_name(name), set()).add(normalize_name(after.names[one]))
    torn = [name for name, new in became.items() if len(new) > 1]
    swapped = [name for name, new in became.items() if new - {name} & became.keys()]
    found = [f'objects of one name have several: {_listed(torn)}'] if torn else []
    return found + ([f'objects have the name of another kind: {_listed(swapped)}'] if swapped else [])
