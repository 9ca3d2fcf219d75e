"""Where invalid pixels lie: interpolated values stand between their neighbours, an annotator's do not."""

from __future__ import annotations

from typing import Dict

import numpy as np

#: Up to this part of a map pixels are looked at one by one; beyond it the whole map is filtered.
_FEW = 16


def count_between(label: np.ndarray, invalid: np.ndarray) -> Dict[int, int]:
    """Counts pixels of invalid values that have both a lower and a higher value among their eight neighbours.

    Args:
        label (np.ndarray): uint8 (H, W).
        invalid (np.ndarray): bool (256,), which values are invalid.

    Returns:
        dict[int, int]: every invalid value that occurs -> such pixels, 0 included.

    Example:
        >>> invalid = np.arange(256) == 5
        >>> count_between(np.array([[0, 0, 5, 9, 9], [0, 0, 5, 9, 9]], dtype=np.uint8), invalid)
        {5: 2}
    """
    found = np.flatnonzero(_where(label.ravel(), invalid))
    if not found.size:
        return {}
    values = label.ravel()[found]
    present = np.flatnonzero(np.bincount(values))
    if found.size > label.size // _FEW:
        between = _around(label, np.minimum) < label
        between &= _around(label, np.maximum) > label
        values = values[between.ravel()[found]]
    else:
        values = values[_stand_between(label, found, values)]
    counts = np.bincount(values, minlength=256)
    return {int(value): int(counts[value]) for value in present}


def _where(label: np.ndarray, invalid: np.ndarray) -> np.ndarray:
    """bool, which pixels are invalid. Mostly a few values are: comparing is several times faster than looking up."""
    present = np.flatnonzero(invalid)
    low, high = int(present[0]), int(present[-1])
    if present.size == high - low + 1:
        # What is below wraps around and becomes large: one comparison finds both ends of the range.
        return (label - np.uint8(low)) <= high - low
    return invalid[label]


def _stand_between(label: np.ndarray, found: np.ndarray, values: np.ndarray) -> np.ndarray:
    """bool, of the pixels at the flat positions ``found``."""
    height, width = label.shape
    rows, columns = np.divmod(found, width)
    low = high = values
    for down in (-1, 0, 1):
        row = np.clip(rows + down, 0, height - 1) * width
        for right in (-1, 0, 1):
            neighbour = label.ravel()[row + np.clip(columns + right, 0, width - 1)]
            low, high = np.minimum(low, neighbour), np.maximum(high, neighbour)
    return (low < values) & (high > values)


def _around(label: np.ndarray, pick: np.ufunc) -> np.ndarray:
    """The least or greatest of each pixel and its neighbours."""
    padded = np.pad(label, 1, mode='edge')
    rows = pick(pick(padded[:-2], padded[1:-1]), padded[2:])
    return pick(pick(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])
