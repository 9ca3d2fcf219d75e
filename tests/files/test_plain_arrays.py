"""Pickles with numbers of numpy: read on every protocol, and nothing else of numpy is built."""

from __future__ import annotations

import io
import os
import pickle
from typing import Any

import numpy as np
import pytest

from mmguard.files.plain_arrays import load_plain_arrays
from mmguard.files.plain_pickle import RefusedName

INFO = {
    'box': np.arange(6, dtype=np.float32).reshape(2, 3),
    'columns': np.asfortranarray(np.arange(6).reshape(2, 3)),
    'swapped': np.array([1, 258], '>u2'),
    'label': np.int64(-1),
    'score': np.float32(0.5),
    'valid': np.bool_(True),
    'names': np.array(['car', 'person']),
    'nothing': np.zeros((0, 7)),
    'token': 'abc',
}


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
def test_numbers_are_those_that_were_written(protocol: int) -> None:
    read = load_plain_arrays(io.BytesIO(pickle.dumps(INFO, protocol)))
    for key, value in INFO.items():
        plain = read[key].tolist() if isinstance(value, np.ndarray) else read[key]
        assert plain == (value.tolist() if hasattr(value, 'tolist') else value), key
    assert type(read['label']) is int


class _Calls:
    def __reduce__(self) -> Any:
        return os.getpid, ()


@pytest.mark.parametrize(
    'value',
    [np.array([{}], object), np.zeros(1, [('x', int)]), np.datetime64('2020'), _Calls(), np.array([_Calls()])],
    ids=['objects', 'records', 'dates', 'a function', 'a function in an array'],
)
def test_anything_else_is_refused(value: Any) -> None:
    for protocol in (2, 4, pickle.HIGHEST_PROTOCOL):
        with pytest.raises((RefusedName, pickle.UnpicklingError)):
            load_plain_arrays(io.BytesIO(pickle.dumps(value, protocol)))


def test_damaged_arrays_raise() -> None:
    whole = pickle.dumps(INFO)
    for length in range(0, len(whole) - 1, 7):
        with pytest.raises(Exception, match=r'.*'):
            load_plain_arrays(io.BytesIO(whole[:length]))
