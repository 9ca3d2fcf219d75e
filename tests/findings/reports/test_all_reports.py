"""Public reports: the first finding names the true cause, and advises nothing that would do harm."""

from __future__ import annotations

from pathlib import Path

import detection_reports
import pytest
import segmentation_reports
from situation import holds
from this_stack import is_here

REPORTS = {**segmentation_reports.REPORTS, **detection_reports.REPORTS}


@pytest.mark.parametrize('name', [name for name in REPORTS if is_here(REPORTS[name].codes)])
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    holds(REPORTS[name], tmp_path)
