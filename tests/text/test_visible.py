"""Foreign text on a screen: every character is seen, and none of them acts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmguard.detection import warning
from mmguard.labels.errors import LabelGuardError
from mmguard.labels.space import LabelRule
from mmguard.labels.tally import Tally
from mmguard.text.visible import LONGEST, visible, visible_name

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
    monkeypatch.setattr(warning, '_offending_batches', 0)
    rule = LabelRule(3, on_invalid='raise')
    with pytest.raises(LabelGuardError) as raised:
        rule.sanitize(np.array([[9]]), HOSTILE)
    assert str(raised.value).replace('\n', '').isprintable()
    with pytest.warns(UserWarning, match='instances') as caught:
        warning.warn_of([Tally(4, 1, source=HOSTILE)], 1)
    assert str(caught[0].message).replace('\n', '').isprintable()
