"""Few bytes of YAML, JSON or a pickle do not become much: size and depth are bounded before anything walks them."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any, List

import pytest

from mmguard.config.losses import class_weights
from mmguard.config.parts import Part
from mmguard.files.plain_data import DEEPEST, NotPlain, load_plain_pickle, parse_data
from mmguard.text import shorten

pytestmark = pytest.mark.timeout(60)


def shared(levels: int, kind: Any) -> Any:
    part = kind([1])
    for _ in range(levels):
        part = kind([part, part])
    return part


def nested(levels: int) -> Any:
    part: Any = 1
    for _ in range(levels):
        part = [part]
    return part


def circle() -> List[Any]:
    part: List[Any] = []
    part.append(part)
    return part


#: A dict whose key is a tuple of shared tuples: whoever makes it hashes the key.
KEY = b'\x80\x02}' + b'K\x01\x85q\x00' + b''.join(
    b'h' + bytes([n]) + b'h' + bytes([n]) + b'\x86q' + bytes([n + 1]) for n in range(60)
) + b'K\x01s.'  # fmt: skip
DUPLICATED = b'\x80\x02}' + b'K\x01\x85' + b'2\x86' * 60 + b'K\x01s.'

SPREAD = {
    'lists': pickle.dumps(shared(40, list)),
    'in a dict': pickle.dumps({'k': shared(40, list)}),
    'tuples': pickle.dumps(shared(40, tuple)),
    'protocol 0': pickle.dumps(shared(40, list), 0),
    'key': KEY,
    'duplicated': DUPLICATED,
    'more objects than bytes': b'\x80\x02]r\xff\xff\xff\x7f.',
    'deep': pickle.dumps(nested(150)),
    'circle': pickle.dumps(circle()),
}


@pytest.mark.parametrize('name', SPREAD)
def test_a_pickle_that_spreads_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(pickle.UnpicklingError):
        load_plain_pickle(SPREAD[name])
    file = tmp_path / 'weights.pkl'
    file.write_bytes(SPREAD[name])
    found = class_weights(Part('loss', dict(type='CrossEntropyLoss', class_weight=str(file)), 'mmseg'))
    assert not found.values
    assert str(file) in found.problem
    assert len(found.problem) < len(str(file)) + 300


def test_a_long_list_is_read() -> None:
    weights = [0.1, 2, 0.1] * 20_000
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert load_plain_pickle(pickle.dumps(weights, protocol)) == weights


ALIASES = 'a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n' + ''.join(
    f'a{n}: &a{n} [{", ".join([f"*a{n - 1}"] * 10)}]\n' for n in range(1, 12)
)
MERGED = 'a0: &a0 {x: 1, y: 2}\n' + ''.join(
    f'a{n}: &a{n}\n  <<: [{", ".join([f"*a{n - 1}"] * 10)}]\n' for n in range(1, 12)
)
CHAIN = 'a0: &a0 1\n' + ''.join(f'a{n}: &a{n} [*a{n - 1}]\n' for n in range(1, 200))


@pytest.mark.parametrize(
    ('text', 'ending'),
    [
        (ALIASES, '.yaml'),
        (MERGED, '.yaml'),
        (CHAIN, '.yaml'),
        ('a: &a [*a]', '.yaml'),
        ('[' * 100_000, '.yaml'),
        ('- ' * 50_000, '.yaml'),
        ('a: ' + '1:1' * 100_000, '.yaml'),
        ('[' * 100_000, '.json'),
        ('[' * (DEEPEST + 2) + ']' * (DEEPEST + 2), '.json'),
    ],
    ids=['aliases', 'merged', 'chain', 'circle', 'lists', 'items', 'number', 'json', 'json levels'],
)
def test_text_that_spreads_is_refused(text: str, ending: str) -> None:
    with pytest.raises(NotPlain):
        parse_data(text, ending)


@pytest.mark.parametrize(
    'text',
    ['a: &a {b: [1, 2]}\nc: {<<: *a, d: *a}\n', json.dumps({'a': nested(50)}), 'a: 2020-01-01\n', '', 'a: "x"\n'],
)
def test_plain_text_is_what_yaml_says(text: str) -> None:
    import yaml

    assert parse_data(text, '.yaml') == yaml.safe_load(text)


@pytest.mark.parametrize('kind', [list, tuple])
def test_what_is_shown_of_a_value_is_short(kind: Any) -> None:
    assert len(shorten(shared(60, kind))) == 60
    assert len(shorten({'a': shared(60, kind), 'b': nested(5000)}, 100)) == 100
    assert len(shorten('x' * 10**7)) == 60
    assert shorten(10**5000) == 'a int'
    assert shorten(circle()) == '[' * 57 + '...'


@pytest.mark.parametrize(
    'value', [None, 1.5, 'a', b'a', [], [1], (1,), (1, 2), (), set(), {1}, frozenset('a'), {'a': [1, {2: 'b'}]}]
)
def test_a_small_value_is_shown_as_python_shows_it(value: Any) -> None:
    assert shorten(value) == repr(value)
