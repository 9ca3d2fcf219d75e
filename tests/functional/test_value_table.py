from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mmguard.functional.class_target import HIGHEST, LOWEST, count_values

VALUES = st.integers(-3, 30) | st.sampled_from([LOWEST - 1, LOWEST, HIGHEST, HIGHEST + 1, 2**62, -(2**62)])


@given(st.lists(VALUES, max_size=60), st.sampled_from([(-1,), (-1, 1), (1, -1), (1, -1, 1)]))
@settings(derandomize=True, deadline=None)
def test_every_value_within_the_table_is_counted(values: list, shape: tuple) -> None:
    label = torch.tensor(values, dtype=torch.int64).view(shape if values else (0,))
    before = label.clone()
    table = count_values(label)
    assert label.equal(before)
    assert table.shape == (HIGHEST - LOWEST + 1,)
    found = {LOWEST + place: n for place, n in enumerate(table.tolist()) if n}
    assert found == {value: n for value, n in Counter(values).items() if LOWEST <= value <= HIGHEST}


@pytest.mark.parametrize('dtype', [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_labels_of_other_dtypes_and_of_no_dimension(dtype: torch.dtype) -> None:
    assert count_values(torch.full((3, 5, 7), 7, dtype=dtype))[7 - LOWEST] == 105
    assert count_values(torch.tensor(7, dtype=dtype))[7 - LOWEST] == 1


def test_a_transposed_map_is_not_written_to() -> None:
    label = torch.arange(12).view(3, 4).t()
    assert count_values(label).sum() == 12
    assert label.equal(torch.arange(12).view(3, 4).t())
