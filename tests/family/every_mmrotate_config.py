"""All configs that ship with mmrotate: by hand, `pytest tests/family/every_mmrotate_config.py`."""

from __future__ import annotations

import pytest
from oriented_configs import holds, shipped


@pytest.mark.parametrize('name', shipped('mmrotate'))
def test_a_config_is_guarded_and_raises_no_false_alarm(name: str) -> None:
    holds('mmrotate', name)
