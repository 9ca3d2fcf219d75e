"""A case as it will be with other values in its label file."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Dict, Sequence, Tuple

from mmguard.tools.scan.nnunet.record import CaseRecord, is_whole
from mmguard.tools.scan.nnunet.voxels import FRACTIONS


def relabelled(record: CaseRecord, label_map: Sequence[Tuple[int, int]] = (), rounded: bool = False) -> CaseRecord:
    """A case with other labels.

    Args:
        label_map: (value, label) pairs.
        rounded (bool): Values become the nearest integers.
    """
    label = record.label
    if label is None or not label.is_read or label.left_out:
        return record
    table = dict(label_map)
    values: Counter = Counter()
    slices: Dict[str, Counter] = {}
    for value, count in label.values.items():
        number = round(float(value)) if rounded or is_whole(value) else None
        new = value if number is None else str(table.get(number, number))
        values[new] += count
        slices.setdefault(new, Counter()).update(label.slices.get(value, {}))
    if not rounded and FRACTIONS in label.slices:
        slices[FRACTIONS] = Counter(label.slices[FRACTIONS])
    written = replace(
        label,
        values=dict(values),
        slices={value: dict(places) for value, places in slices.items() if places},
        fractions=0 if rounded else label.fractions,
        # What was no picture becomes none when its values do.
        unlike=label.unlike if label.is_picture else 0,
    )
    return replace(record, label=written)
