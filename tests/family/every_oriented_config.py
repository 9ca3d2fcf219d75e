"""All configs that ship with mmrotate and mmdet3d: by hand, `pytest tests/family/every_oriented_config.py`."""

from __future__ import annotations

import pytest
from oriented_configs import ROOTS, holds, shipped


@pytest.mark.parametrize(('framework', 'name'), [(one, name) for one in ROOTS for name in shipped(one)])
def test_a_config_is_guarded_and_raises_no_false_alarm(framework: str, name: str) -> None:
    holds(framework, name)
