"""Public reports about nnU-Net's raw data: the first finding names the true cause, and advises no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from situation import holds
from volume_reports import REPORTS


@pytest.mark.parametrize('name', list(REPORTS))
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    holds(REPORTS[name], tmp_path)
