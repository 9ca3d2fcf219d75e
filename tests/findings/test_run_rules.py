"""Findings from the ends of ranks: one finding per fault, and none for what others raise because of it."""

from __future__ import annotations

from typing import Any, List

import pytest

from mmguard.facts.run import KILLED, MISSED_ANOTHER, RAISED, RankFacts, RunFacts, UnusedParameters, find_unused
from mmguard.findings import Finding, diagnose
from mmguard.findings.finding import ERROR, INFO, WARNING
from mmguard.findings.rule import RunRule
from mmguard.findings.rules import RULES

GONE = 'AbsentRankError: rank 0 waited 3.1 s for the others: no heartbeat from rank 1 (process 7 on a) for 3 s'
SKIPPED = (
    'AbsentRankError: rank 0 waited 9.0 s for the others: rank 1 is alive, but waits in all_reduce, called from m.py, '
    'line 12: rank 0 skipped this collective, or the others should have skipped it as well'
)
UNUSED = (
    'RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.\n'
    'Parameter indices which did not receive grad for rank 1: 3 4'
)
MISMATCH = 'LabelGuardError: ranks differ in their losses: rank 1 lacks loss_mask (samples: a.jpg)'


def rank(number: int, ending: str, error: str = '', iteration: int = 37) -> RankFacts:
    return RankFacts(number, ending, f'rank {number} was here in iteration {iteration}', error, iteration)


def found(*ranks: RankFacts, **run: Any) -> List[Finding]:
    return diagnose(rules=[rule for rule in RULES if issubclass(rule, RunRule)], run=RunFacts(**run), ranks=ranks)


@pytest.mark.parametrize(
    ('ranks', 'code'),
    [
        ([rank(0, MISSED_ANOTHER, GONE)], 'MG303'),
        ([rank(0, MISSED_ANOTHER, SKIPPED)], 'MG304'),
        ([rank(0, RAISED, 'AssertionError: loss log variables are different across GPUs!')], 'MG304'),
        ([rank(0, RAISED, UNUSED), rank(1, RAISED, UNUSED)], 'MG305'),
        ([rank(0, RAISED, MISMATCH), rank(1, RAISED, MISMATCH)], 'MG306'),
    ],
)
def test_one_fault_is_one_finding(ranks: List[RankFacts], code: str) -> None:
    (finding,) = found(*ranks)
    assert (finding.code, finding.severity) == (code, ERROR)


@pytest.mark.parametrize('first', [rank(1, RAISED, 'IndexError: Target 77'), rank(1, KILLED)])
def test_a_rank_that_ended_for_itself_is_no_finding_about_ranks(first: RankFacts) -> None:
    assert found(first, rank(0, MISSED_ANOTHER, SKIPPED)) == []
    assert found() == []


def test_ranks_without_a_record_are_named_and_are_no_error_beside_another() -> None:
    (finding,) = found(rank(0, RAISED, 'IndexError: Target 77'), silent=[2, 3])
    assert (finding.code, finding.severity) == ('MG303', INFO)
    (finding,) = found(rank(0, MISSED_ANOTHER, GONE), silent=[1])
    assert finding.severity == ERROR


def test_losses_that_were_filled_are_a_warning_with_their_samples() -> None:
    filled = {'loss_mask': {'1': 12, '0': 1}}
    (finding,) = found(filled=filled, first_filled={1: (4, ['a.jpg', 'b.jpg']), 0: (9, ['b.jpg'])})
    assert (finding.code, finding.severity) == ('MG306', WARNING)
    assert finding.files == ('b.jpg', 'a.jpg')


def test_what_all_ranks_lack_is_in_the_model() -> None:
    said = [UNUSED.replace('rank 1: 3 4', f'rank {number}: 3 4') for number in range(2)]
    assert find_unused(said).everywhere
    assert not find_unused(said[1:]).everywhere


def test_names_of_parameters_are_read_with_their_rank() -> None:
    names = ('roi_head.mask_head.a.weight', 'roi_head.mask_head.b')
    said = f'{UNUSED}\nParameters which did not receive grad for rank 1: {", ".join(names)}'
    assert find_unused([said]) == UnusedParameters({1: (3, 4)}, {1: names})
