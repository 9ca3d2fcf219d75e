"""Which changes of a label map are a mapping of values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mmguard.tools.trace.changes import pointwise

MAPS = hnp.arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 5))


@given(MAPS, st.lists(st.integers(-3, 400), min_size=6, max_size=6))
def test_every_mapping_is_found_again(label: np.ndarray, table: list) -> None:
    mapped = np.array(table)[label]
    assert pointwise(label, mapped) == {int(value): table[value] for value in np.unique(label)}


@given(
    MAPS.flatmap(lambda label: st.tuples(st.just(label), hnp.arrays(np.uint8, label.shape, elements=st.integers(0, 5))))
)
def test_it_agrees_with_looking_at_every_pixel(pair: tuple) -> None:
    before, after = pair
    targets: dict = {}
    for old, new in zip(before.ravel().tolist(), after.ravel().tolist()):
        targets.setdefault(old, set()).add(new)
    found = pointwise(before, after)
    if all(len(to) == 1 for to in targets.values()):
        assert found == {old: next(iter(to)) for old, to in targets.items()}
    else:
        assert found is None


def test_another_shape_is_no_mapping() -> None:
    assert pointwise(np.zeros((2, 3), int), np.zeros((3, 2), int)) is None
