"""What ``check_target`` says of a batch, and what it must not say."""

from __future__ import annotations

import warnings
from typing import Tuple

import pytest
from target_batches import BATCHES

from mmguard.functional import check_target
from mmguard.text.words import sentences


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
