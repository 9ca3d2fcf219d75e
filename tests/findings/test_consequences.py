"""Findings that follow from a likelier one are not shown: two advices for one fault contradict each other."""

from __future__ import annotations

import pytest

from mmguard.findings import RULES, LabelFacts, diagnose
from mmguard.findings.facts import MapFacts
from mmguard.findings.rules.labels.out_of_range import OutOfRange
from mmguard.findings.rules.labels.stray_value import StrayValue
from mmguard.findings.signatures import read_signatures
from mmguard.findings.volume_examples import voxels

CODES = {cause.code: cause for cause in RULES}


def test_the_rest_is_reported_where_nothing_explains_the_values() -> None:
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
    known = {*CODES, *(signature.code for signature in read_signatures())}
    assert set(CODES[code].explains) <= known - {code}


@pytest.mark.parametrize(
    'counts',
    [
        {0: 9_000_000, 1: 90_000, 4: 50_000},  # BraTS: 4 is the third class
        {0: 9_000_000, 205: 40_000, 420: 50_000},
        {0: 9_000_000, 2: 40_000, 3: 50_000},  # one too high
    ],
)
def test_a_class_whose_number_was_not_changed_is_not_missing(counts: dict) -> None:
    assert [finding.code for finding in diagnose(voxels(counts))] == ['MG185']


@pytest.mark.parametrize('counts', [{0: 9_000_000, 1: 90_000, 7: 12}, {0: 9_000_000, 5: 50_000}])
def test_a_slip_or_one_value_of_several_does_not_explain_a_missing_class(counts: dict) -> None:
    assert 'MG194' in [finding.code for finding in diagnose(voxels(counts))]


def test_colours_are_not_raw_ids_of_cityscapes() -> None:
    grays = {153: 12800, 70: 12480, 220: 7872, 152: 6272, 60: 5504, 128: 5376, 100: 5248, 33: 400, 26: 300}
    read = diagnose(LabelFacts(grays, 19, 255, histogram=grays, maps=MapFacts(forms={'rgba': 6}, raw=grays)))
    assert [finding.code for finding in read] == ['MG120']
    assert 'MG101' not in [finding.code for finding in diagnose(LabelFacts(grays, 19, 255, histogram=grays))]


def test_an_ignored_class_is_no_gap() -> None:
    counts = dict.fromkeys(range(1, 7), 4000)
    codes = [finding.code for finding in diagnose(LabelFacts({6: 4000}, 5, 5, histogram=counts))]
    assert codes[0] == 'MG115'
    assert 'MG116' not in codes
    counts[0] = 4000
    codes = [finding.code for finding in diagnose(LabelFacts({6: 4000}, 6, 5, histogram=counts))]
    assert codes[0] == 'MG102'
    assert 'MG116' not in codes
