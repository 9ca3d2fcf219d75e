"""Outcome of ``check_target`` for a batch, and the finding that it names."""

from __future__ import annotations

import re
import warnings

import pytest
from target_batches import BATCHES

from mmguard.functional import check_target


@pytest.mark.parametrize('name', list(BATCHES))
def test_the_outcome_of_a_batch(name: str) -> None:
    logits, target, options = BATCHES[name].make()
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        try:
            check_target(logits, target, **options)
            raised = None
        except (ValueError, TypeError, UserWarning) as error:
            raised = error
    assert (None if raised is None else type(raised)) == BATCHES[name].raised
    assert re.findall(r'MG\d+', str(raised))[:1] == [BATCHES[name].code] * bool(BATCHES[name].code)
