from __future__ import annotations

import re
from pathlib import Path

import pytest

import mmguard
from mmguard.text.words import counted, plural


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
    assert [counted(n, 'ox', 'oxen') for n in (1, 1200)] == ['1 ox', '1,200 oxen']


def test_nobody_makes_plurals_by_hand() -> None:
    by_hand = re.compile(r"""["']e?s["'] if|else ["']e?s["']""")
    root = Path(mmguard.__file__).parent
    found = [
        path.name
        for path in root.rglob('*.py')
        if path.name != 'words.py' and by_hand.search(path.read_text(encoding='utf-8'))
    ]
    assert found == []
