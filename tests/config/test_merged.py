"""Two edits of one config are one where they change different entries, and say where they do not."""

from __future__ import annotations

from typing import Any

import pytest

from mmguard.config.changes import Conflict, merged

LOAD, PACK = dict(type='Load', backend='cv2'), dict(type='Pack')
GUARD, MAP = dict(type='Guard'), dict(type='Guard', label_map={255: 1})


@pytest.mark.parametrize(
    ('base', 'one', 'other', 'both'),
    [
        ([LOAD, PACK], [LOAD, MAP, PACK], [LOAD, PACK, GUARD], [LOAD, MAP, PACK, GUARD]),
        ([LOAD, PACK], [LOAD, PACK, GUARD], [LOAD, PACK, GUARD], [LOAD, PACK, GUARD]),
        ([LOAD, PACK], [dict(type='Load'), PACK], [LOAD, PACK, GUARD], [dict(type='Load'), PACK, GUARD]),
        (
            [LOAD],
            [{**LOAD, 'backend': 'pillow'}],
            [{**LOAD, 'reduce': True}],
            [dict(LOAD, backend='pillow', reduce=True)],
        ),
        ((LOAD, PACK), (PACK,), (LOAD, PACK, GUARD), (PACK, GUARD)),
        ({'a': 1, 'b': 2}, {'a': 1}, {'a': 1, 'b': 2, 'c': {}}, {'a': 1, 'c': {}}),
        ({}, {'imports': {'a': 1}}, {'imports': {'b': 2}}, {'imports': {'a': 1, 'b': 2}}),
    ],
)
def test_what_either_changed_is_changed(base: Any, one: Any, other: Any, both: Any) -> None:
    assert merged(base, one, other) == both
    assert merged(base, other, one) == both
    assert type(merged(base, one, other)) is type(base)


@pytest.mark.parametrize(
    ('base', 'one', 'other', 'path'),
    [
        ({'head': {'n': 1}}, {'head': {'n': 2}}, {'head': {'n': 3}}, 'head.n'),
        ({'steps': [LOAD]}, {'steps': [{**LOAD, 'backend': 'pillow'}]}, {'steps': []}, 'steps[0]'),
        ({}, {'imports': ['a']}, {'imports': ['b']}, 'imports'),
    ],
)
def test_a_contradiction_names_its_place(base: Any, one: Any, other: Any, path: str) -> None:
    with pytest.raises(Conflict) as raised:
        merged(base, one, other)
    assert str(raised.value) == path
