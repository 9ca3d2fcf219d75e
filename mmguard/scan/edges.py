"""Where invalid pixels lie: interpolated values stand between their neighbours, an annotator's do not."""

from __future__ import annotations

from typing import Dict

import numpy as np


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
    padded = np.pad(label, 1, mode='edge')
    between = invalid[label]
    present = np.flatnonzero(np.bincount(label[between], minlength=256))
    between &= _around(padded, np.minimum) < label
    between &= _around(padded, np.maximum) > label
    counts = np.bincount(label[between], minlength=256)
    return {int(value): int(counts[value]) for value in present}


def _around(padded: np.ndarray, pick: np.ufunc) -> np.ndarray:
    rows = pick(pick(padded[:-2], padded[1:-1]), padded[2:])
    return pick(pick(rows[:, :-2], rows[:, 1:-1]), rows[:, 2:])
