"""An edit is applied to facts: what was given may not allow it, and faults of mmguard's own come to light."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Type

import pytest

from mmguard.config.read import ReadConfig
from mmguard.errors import CannotRun
from mmguard.findings.edits import Edit
from mmguard.findings.facts import LabelFacts
from mmguard.findings.rule import Facts

EDIT = Edit('Write it')


def apply_where_reading_raises(error: Exception) -> Any:
    def reread(*_: Any) -> LabelFacts:
        raise error

    return EDIT.apply(Facts(labels=LabelFacts({}, 2), reread=reread))


@pytest.mark.parametrize('error', [CannotRun('x'), OSError('no space left'), UnicodeError('x')])
def test_what_cannot_be_read_again_is_no_edit(error: Exception) -> None:
    assert apply_where_reading_raises(error) is None


@pytest.mark.parametrize('kind', [KeyError, TypeError, AttributeError, AssertionError, RuntimeError])
def test_a_fault_of_the_reader_is_raised(kind: Type[Exception]) -> None:
    with pytest.raises(kind):
        apply_where_reading_raises(kind('x'))


@pytest.mark.parametrize('path', ['model.head[3].num_classes', 'model.type.name', 'model.head[0].x.y.z'])
def test_a_place_that_a_config_does_not_have_is_no_edit(path: str) -> None:
    config = ReadConfig({'model': {'type': 'A', 'head': [{'x': 5}]}}, Path('config.py'))
    assert replace(EDIT, config=((path, 2),)).apply(Facts(config=config)) is None


def test_a_place_that_is_there_is_changed() -> None:
    config = ReadConfig({'model': {'head': [{'x': 5}]}}, Path('config.py'))
    changed = replace(EDIT, config=(('model.head[0].x', 2),)).apply(Facts(config=config))
    assert changed is not None
    assert changed.config is not None
    assert changed.config.data == {'model': {'head': [{'x': 2}]}}
