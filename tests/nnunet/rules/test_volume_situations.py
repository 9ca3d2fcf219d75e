"""Situations of nnU-Net's raw data sets, each with its true cause."""

from __future__ import annotations

from pathlib import Path

import pytest
import volume_sets
from situation import holds
from volume_reports import REPORTS

pytest.importorskip('nibabel')
pytest.importorskip('SimpleITK')

ALL = {**volume_sets.SITUATIONS, **REPORTS}


@pytest.mark.parametrize('name', list(ALL))
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    holds(ALL[name], tmp_path)
