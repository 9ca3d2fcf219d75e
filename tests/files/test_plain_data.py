"""Few bytes of YAML or JSON do not become much: size and depth are bounded before anything walks them."""

from __future__ import annotations

import json
from typing import Any, List

import pytest

from mmguard.files.plain_data import DEEPEST, NotPlain, parse_data
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
        ('[' * (DEEPEST + 1) + ']' * (DEEPEST + 1), '.json'),
        ('[' * (DEEPEST + 1) + ']' * (DEEPEST + 1), '.yaml'),
    ],
    ids=['aliases', 'merged', 'chain', 'circle', 'lists', 'items', 'number', 'json', 'json levels', 'levels'],
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
