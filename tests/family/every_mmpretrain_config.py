"""All configs that ship with mmpretrain: by hand, some minutes.

python -m pytest -o python_files=every_mmpretrain_config.py tests/family/every_mmpretrain_config.py
"""

from __future__ import annotations

import pytest
from mmpretrain_configs import check, shipped


@pytest.mark.timeout(3600)
def test_every_shipped_config_is_guarded_and_without_a_finding() -> None:
    names = shipped()
    assert sum(map(check, names)) > 520
