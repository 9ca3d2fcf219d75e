"""All configs that ship with mmyolo, by hand: it takes a minute."""

from __future__ import annotations

import pytest
from mmyolo_configs import holds, outcome, shipped


@pytest.mark.timeout(3600)
def test_every_shipped_config_is_guarded_without_exception_or_false_alarm() -> None:
    outcomes = [outcome(name) for name in shipped()]
    for found in outcomes:
        holds(found)
    assert sum(not found.error for found in outcomes) >= 120
