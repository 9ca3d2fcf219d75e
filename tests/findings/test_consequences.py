"""Findings that follow from a likelier one are not told: two advices for one fault contradict each other."""

from __future__ import annotations

import pytest

from mmguard.findings import RULES, LabelFacts, diagnose
from mmguard.findings.rules.labels.out_of_range import OutOfRange
from mmguard.findings.rules.labels.stray_value import StrayValue
from mmguard.findings.signatures import SIGNATURES

CODES = {cause.code: cause for cause in RULES}


def test_the_rest_is_told_where_nothing_explains_the_values() -> None:
    assert [finding.code for finding in diagnose(LabelFacts({200: 3}, 19, 255))] == ['MG107']
    assert [finding.code for finding in diagnose(LabelFacts({11: 3}, 11, 255))] == ['MG102']


def test_a_doubtful_cause_explains_nothing() -> None:
    facts = LabelFacts({2: 1}, 2, reasons={'label': 1, 'box_outside': 9}, kind='instances')
    assert [finding.code for finding in diagnose(facts)] == ['MG109', 'MG107', 'MG102']


def test_what_is_likelier_is_never_left_out() -> None:
    class Late(OutOfRange):
        code = 'MG998'
        explains = ('MG999',)

    class Early(StrayValue):
        code = 'MG999'

        def likelihood(self, facts: LabelFacts) -> float:
            return 0.9

    assert [finding.code for finding in diagnose(LabelFacts({9: 1}, 3, 255), rules=[Late, Early])] == ['MG999', 'MG998']


@pytest.mark.parametrize('code', sorted(CODES))
def test_causes_explain_others_that_exist(code: str) -> None:
    known = {*CODES, *(signature.code for signature in SIGNATURES)}
    assert set(CODES[code].explains) <= known - {code}
