"""Kinds of causes that show in one batch: what ``check_target`` says of each, and what it must not say."""

from __future__ import annotations

import warnings
from typing import Tuple

import pytest
from kinds_batch_values import BATCHES as OF_VALUES
from kinds_batches import BATCHES as OF_SHAPES
from kinds_fresh_2_runs import BATCHES as FRESH_2
from kinds_fresh_3_runs import BATCHES as FRESH_3

from mmguard.functional import check_target
from mmguard.text.words import sentences

BATCHES = {**OF_SHAPES, **OF_VALUES, **FRESH_2, **FRESH_3}


def outcome(name: str) -> Tuple[str, str]:
    """``'raises'``, ``'warns'`` or ``'passes'``, and all that was said."""
    logits, target, options = BATCHES[name].make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        try:
            said = check_target(logits, target, **options)
        except (ValueError, TypeError) as error:
            return 'raises', str(error)
    return ('warns', str(caught[0].message)) if caught else ('passes', str(said))


@pytest.mark.parametrize('name', list(BATCHES))
def test_what_is_said_of_a_batch(name: str) -> None:
    expected = BATCHES[name]
    found, said = outcome(name)
    assert found == expected.outcome, said
    places = [said.find(words) for words in expected.says]
    assert -1 not in places, f'{expected.says}: {said}'
    assert places == sorted(places), said
    assert not [words for words in expected.never if words in said], said
    assert all(len(sentences(fault)) <= 3 for fault in said.split('Also: ')), said  # each names what, where, what to do
