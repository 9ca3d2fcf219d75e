"""Values of configs in one line of a finding."""

from __future__ import annotations

import sys

import pytest

from mmguard.findings.finding import shown


def test_a_list_is_shown_by_its_ends() -> None:
    assert shown(list(range(1000))) == '[0, ..., 999] (1,000 entries)'


@pytest.mark.skipif(sys.version_info < (3, 11), reason='prints integers of any length')
@pytest.mark.parametrize('value', [10**6000, [10**6000] * 9], ids=['number', 'list'])
def test_what_python_does_not_print_is_named(value: object) -> None:
    assert shown(value) == f'what cannot be shown ({type(value).__name__})'
