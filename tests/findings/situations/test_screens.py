"""Three sentences and the command: what a screen shows of a finding. Every situation is held to it as it is found."""

from __future__ import annotations

from dataclasses import replace

import pytest
from screens import fits_a_screen, sentences_of

from mmguard.findings import Finding
from mmguard.findings.brief import brief
from mmguard.findings.edits import Edit
from mmguard.findings.wording import finding_text, numbered, unpack

EDITS = (
    Edit(
        'Write `num_classes=12` in every head. Class 11 has 3 % of the pixels. It is rare.', question='Is 11 a class?'
    ),
    Edit('Write `ignore_index=11`.', question='Is 11 void?', config=(('model.decode_head.ignore_index', 11),)),
    Edit('Ask the annotators.'),
)
FINDING = Finding(
    'MG102', 'There is one class too many. The head has 11.', 'value 11 in 3 of 4 files', '', 0.9, edits=EDITS
)


def test_a_screen_holds_cause_question_and_edit_and_counts_the_rest() -> None:
    (finding,) = numbered([FINDING])
    assert finding_text(finding, verbose=False) == (
        'MG102 error: There is one class too many.\n'
        '  seen: value 11 in 3 of 4 files\n'
        '  do: [by hand] Is 11 a class? Write `num_classes=12` in every head.\n'
        '  more with --verbose: 2 other ways ([1]) if the answer is no, 3 notes'
    )
    fits_a_screen(finding)


def test_nothing_is_missing_with_verbose_and_in_the_json() -> None:
    whole, record = finding_text(FINDING), str(unpack(FINDING))
    for edit in EDITS:
        assert edit.text in ' '.join(whole.split())
        assert edit.text in record
    assert 'The head has 11.' in whole
    assert '--verbose' not in whole


def test_what_is_written_comes_before_what_is_worth_knowing() -> None:
    edit = Edit('It is old. It was always so. Write `a=1`. It is new.')
    finding = replace(FINDING, cause='There is one class too many.', edits=(edit,))
    assert brief(finding).advice == 'It is old. Write `a=1`.'
    assert brief(finding, 2).advice == 'Write `a=1`.'


def test_what_has_few_words_is_shown_whole() -> None:
    short = replace(FINDING, edits=(), advice='Look at the files.')
    assert brief(short).left == ''
    assert len(sentences_of(finding_text(short, verbose=False))) == 3
    assert finding_text(short, verbose=False) == finding_text(short)


@pytest.mark.parametrize('advice', ['One. Two. Three. Write `a=1`.', 'Write `a`. Write `b`. Write `c`.'])
def test_advice_without_an_edit_is_cut_alike(advice: str) -> None:
    assert len(sentences_of(finding_text(replace(FINDING, edits=(), advice=advice), verbose=False))) == 3
