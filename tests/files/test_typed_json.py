"""JSON as dataclasses, or one line that says why not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmguard.files.plain_data import Rank, decode, parse_object

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
COUNTS = st.integers(0, 2**53)


@dataclass
class Inner:
    count: int
    rank: Optional[Rank] = None


@dataclass
class Outer:
    name: str
    on: bool = False
    place: Optional[int] = None
    inner: List[Inner] = field(default_factory=list)
    labels: Dict[int, int] = field(default_factory=dict)
    free: Any = None


@given(
    st.builds(
        Outer,
        st.text(),
        st.booleans(),
        st.none() | COUNTS,
        st.lists(st.builds(Inner, COUNTS, st.none() | st.integers(0, 9))),
        st.dictionaries(st.integers(-(2**63), 2**63 - 1), COUNTS),
        JSON,
    )
)
def test_what_fits_comes_back(value: Outer) -> None:
    text = json.dumps({**vars(value), 'inner': [vars(one) for one in value.inner], 'new': 1})
    again = decode(Outer, parse_object(text.encode()))
    assert repr(again) == repr(value)  # a NaN equals nothing


def why_not(value: Any) -> str:
    try:
        decode(Outer, value)
    except ValueError as error:
        return str(error)
    return ''


@given(JSON, st.sampled_from(['name', 'on', 'place', 'inner', 'labels']))
def test_what_does_not_fit_is_said_in_a_line(junk: Any, key: str) -> None:
    why = why_not({'name': 'a', key: junk})
    assert not why or why.startswith(f'{key}: ')
    assert len(why) < 400


@pytest.mark.parametrize('value', [True, None, '3', 3.0, -1, 2**53 + 1, 10**4000, [], {}])
def test_a_count_is_an_integer_of_some_size(value: Any) -> None:
    assert why_not({'name': '', 'inner': [{'count': value}]}).startswith('inner: count: ')
    assert value is None or why_not({'name': '', 'place': value}).startswith('place: ')
