"""The first edit of every situation is followed by machine: it closes the case, and does no harm."""

from __future__ import annotations

import pytest
from following import BUILDS, CODES, case_of
from meanings import MEANS
from this_stack import is_here
from without_edit import WITHOUT

# A test that asks for all situations follows those that its process has not followed yet.
pytestmark = pytest.mark.timeout(1800)

#: Of this stack: MG214 is a fault of OpenMMLab's loss alone.
NAMES = [name for name in BUILDS if is_here(CODES[name])]


@pytest.mark.parametrize('name', [name for name in NAMES if name not in WITHOUT])
def test_the_first_edit_closes_the_case(name: str) -> None:
    followed = case_of(name).answered
    if followed is not None:
        assert not followed.faults, (case_of(name).first.code, followed)
    else:
        assert case_of(name).first.code in CODES[name]  # a fault that is called fine is no case that is closed


@pytest.mark.parametrize('name', NAMES)
def test_no_edit_does_harm_but_where_its_question_is_answered_wrongly(name: str) -> None:
    case = case_of(name)
    if case.answered is not None:
        assert not case.answered.harm, (case.first.code, case.answered)
        # Who is to choose another one than the first must be asked there.
        assert case.edits[0] is case.answered or case.edits[0].edit.applicability == 'asks'
    for followed in case.edits:
        assert followed.edit.applicability == 'asks' or not followed.harm, followed


def test_situations_without_an_edit_are_those_that_are_known() -> None:
    without = {name for name in NAMES if not case_of(name).edits and not case_of(name).is_fine}
    assert without == set(WITHOUT) & set(NAMES), sorted(without ^ set(WITHOUT))
    assert all(WITHOUT.values())


def test_meanings_are_of_situations_that_exist() -> None:
    assert set(MEANS) <= set(BUILDS)
