"""Foreign text, of which every character is seen and none acts, and nouns after their numbers."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mmguard
from mmguard.commands.console import Console, Table, Text
from mmguard.detection import targets
from mmguard.labels.rules import LabelRule
from mmguard.labels.tally import LabelGuardError, Tally
from mmguard.text import LONGEST, plural, quantity, visible, visible_name

pytest.importorskip('rich')

HOSTILE = '\x1b]0;owned\x07\x1b[2J\r\x9b1m\u202e\u2066\u200b\ufeff\udce9\ud800\x00'


@given(st.text(st.characters(), max_size=50))
def test_nothing_is_left_that_is_not_seen(text: str) -> None:
    assert visible(text).replace('\n', '').isprintable()
    assert visible_name(text).isprintable()
    assert visible(visible(text)) == visible(text)
    visible(text).encode('utf-8')


@given(st.text(st.characters(whitelist_categories=('L', 'N', 'S', 'P')), max_size=50))
def test_what_is_seen_stays(text: str) -> None:
    assert visible_name(text) == text


def test_a_long_text_keeps_both_ends() -> None:
    shown = visible('a' * LONGEST + 'b' * 10**6)
    assert len(shown) < LONGEST + 50
    assert shown.startswith('aaa')
    assert shown.endswith('bbb')
    assert '1,000,000 characters' in shown


def test_what_is_raised_and_warned_of_labels_shows_the_name_of_their_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, '_offending_batches', 0)
    rule = LabelRule(3, on_invalid='raise')
    with pytest.raises(LabelGuardError) as raised:
        rule.sanitize(np.array([[9]]), HOSTILE)
    assert str(raised.value).replace('\n', '').isprintable()
    with pytest.warns(UserWarning, match='instances') as caught:
        targets.warn_of([Tally(4, 1, source=HOSTILE)], 1)
    assert str(caught[0].message).replace('\n', '').isprintable()


def test_no_console_passes_a_code_on() -> None:
    file = io.StringIO()
    shown = Console(file=file)
    table = Table(title=HOSTILE)
    table.add_column('file')
    table.add_row(HOSTILE)
    for part in (HOSTILE, Text(HOSTILE), table):
        shown.print(part)
    shown.rule(HOSTILE)
    assert file.getvalue().replace('\n', '').isprintable()
    assert file.getvalue().count('\\u202e') >= 4


@pytest.mark.parametrize(
    ('noun', 'many'),
    [
        ('file', 'files'),
        ('class', 'classes'),
        ('box', 'boxes'),
        ('batch', 'batches'),
        ('entry', 'entries'),
        ('category', 'categories'),
        ('array', 'arrays'),
        ('px', 'px'),
        ('more value', 'more values'),
    ],
)
def test_one_and_many(noun: str, many: str) -> None:
    assert [plural(number, noun) for number in (0, 1, 2)] == [many, noun, many]


def test_a_noun_that_does_not_stand_last() -> None:
    assert [quantity(n, 'ox', 'oxen') for n in (1, 1200)] == ['1 ox', '1,200 oxen']


def test_nobody_makes_plurals_by_hand() -> None:
    by_hand = re.compile(r"""["']e?s["'] if|else ["']e?s["']""")
    root = Path(mmguard.__file__).parent
    found = [
        path.name
        for path in root.rglob('*.py')
        if path.name != 'words.py' and by_hand.search(path.read_text(encoding='utf-8'))
    ]
    assert found == []
