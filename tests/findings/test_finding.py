"""Values of configs in one line of a finding."""

from __future__ import annotations

import sys

import pytest

from mmguard.findings.finding import shown


def test_a_list_is_shown_by_its_ends() -> None:
    assert shown(list(range(1000))) == '[0, ..., 999] (1,000 entries)'


@pytest.mark.skipif(sys.version_info < (3, 11), reason='prints integers of any length')
@pytest.mark.parametrize(
    ('value', 'text'),
    [(10**6000, 'a int'), ([10**6000] * 99, '[a int, ..., a int] (99 entries)')],
    ids=['number', 'list'],
)
def test_what_python_does_not_print_is_named(value: object, text: str) -> None:
    assert shown(value) == text
