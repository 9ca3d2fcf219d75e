"""Looking around pixels, against the plain way."""

from __future__ import annotations

from typing import Dict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from mmguard.tools.scan.edges import count_between

MAPS = arrays(
    np.uint8, array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=12), elements=st.sampled_from([0, 1, 5, 9, 255])
)


def plainly(label: np.ndarray, invalid: np.ndarray) -> Dict[int, int]:
    counts: Dict[int, int] = {}
    for (y, x), value in np.ndenumerate(label):
        if invalid[value]:
            around = label[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2]
            counts[int(value)] = counts.get(int(value), 0) + int(around.min() < value < around.max())
    return dict(sorted(counts.items()))


@settings(max_examples=60, deadline=None)
@given(MAPS, st.sets(st.sampled_from([0, 1, 5, 9, 255]), min_size=1), st.booleans())
def test_pixels_between_their_neighbours(label: np.ndarray, values: set, sparse: bool) -> None:
    if sparse:  # the other way: few invalid pixels in a large map
        label = np.pad(label, 20, mode='edge')
    invalid = np.isin(np.arange(256), list(values))
    assert count_between(label, invalid) == plainly(label, invalid)
    scattered = invalid | (np.arange(256) == 100)
    assert count_between(label, scattered) == plainly(label, scattered)
