"""The message at the first invalid label: all branches of what to do, and nothing that the run does already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch import nn

from mmguard import GuardInstanceLabels, GuardSegLabels, Tally
from mmguard.hooks.first_offence import warnings_of
from mmguard.log.span import Span, by_kind


def said(kind: str, tally: Tally, guard: Any, mode: str = 'train') -> str:
    dataset = SimpleNamespace(pipeline=SimpleNamespace(transforms=[guard]))
    span = Span(1, 1, 4, 1, offending=by_kind(**{kind: [tally]}))
    text, *_ = warnings_of(mode, kind, span, nn.Linear(1, 1), dataset)
    return text


def to_do(text: str) -> str:
    (line,) = (line for line in text.splitlines() if line.startswith('  do: '))
    return line


def test_every_branch_of_a_question_is_there() -> None:
    text = said('pixels', Tally(100, 9, 0, {11: 9}, 'a.png'), GuardSegLabels(num_classes=11))
    for branch in ('label_map={11: 255}', 'reduce_zero_label=True', 'num_classes=12'):
        assert branch in to_do(text)


@pytest.mark.parametrize('reason', ['box_no_area', 'box_outside', 'box_not_finite'])
def test_nobody_is_advised_to_check_boxes_that_are_checked(reason: str) -> None:
    found = Tally(9, 3, 0, {}, 'a.jpg', {reason: 3})
    text = said('instances', found, GuardInstanceLabels(num_classes=80, check_boxes=True))
    assert 'MG109' in text
    assert 'check_boxes' not in text
    assert len(to_do(text)) > 40


@pytest.mark.parametrize('case', ['train skipped', 'train remapped', 'val skipped'])
def test_what_becomes_of_them(case: str, snapshot: Any) -> None:
    mode, what = case.split()
    tally = Tally(9, **{what: 1}, values={7: 1}, source='a')
    snapshot(
        'log',
        f'test_first_offence::test_what_becomes_of_them {case}',
        said('pixels', tally, GuardSegLabels(num_classes=5), mode),
    )
