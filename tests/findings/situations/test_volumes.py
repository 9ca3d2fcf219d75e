"""The first finding of a scan of nnU-Net's raw data names the true cause, and its advice does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from situation import holds
from volume_sets import SITUATIONS


@pytest.mark.parametrize('name', list(SITUATIONS))
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    holds(SITUATIONS[name], tmp_path)
