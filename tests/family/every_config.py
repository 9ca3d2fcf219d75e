"""All configs that ship with a framework of the family, by hand: `pytest tests/family/every_config.py`."""

from __future__ import annotations

import mmpretrain_configs
import mmyolo_configs
import oriented_configs
import pytest


@pytest.mark.timeout(3600)
def test_every_config_of_mmpretrain_is_guarded_and_without_a_finding() -> None:
    assert sum(map(mmpretrain_configs.check, mmpretrain_configs.shipped())) > 520


@pytest.mark.timeout(3600)
def test_every_config_of_mmyolo_is_guarded_without_exception_or_false_alarm() -> None:
    outcomes = [mmyolo_configs.outcome(name) for name in mmyolo_configs.shipped()]
    for found in outcomes:
        mmyolo_configs.holds(found)
    assert sum(not found.error for found in outcomes) >= 120


@pytest.mark.parametrize('name', oriented_configs.shipped())
def test_a_config_of_mmrotate_is_guarded_and_raises_no_false_alarm(name: str) -> None:
    oriented_configs.holds(name)
