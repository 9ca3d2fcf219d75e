"""Public reports: the first finding names the true cause, and no first edit does harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_reports import DETECTION, SEGMENTATION, VOLUMES, Report
from situation import SCAN, checked, findings_of
from this_stack import is_here
from truth import is_among, read_edits

from mmguard.findings.wording import unpack

REPORTS = {**SEGMENTATION, **DETECTION}


@pytest.mark.parametrize('name', [name for name in REPORTS if is_here(REPORTS[name].codes)])
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    answers(REPORTS[name], tmp_path)


@pytest.mark.parametrize('name', VOLUMES)
def test_the_first_finding_about_volumes_names_the_true_cause(name: str, tmp_path: Path) -> None:
    pytest.importorskip('nibabel')
    answers(VOLUMES[name], tmp_path)


def answers(report: Report, root: Path) -> None:
    """Assert that the first finding names the cause, that its edit sets what it must, and none what it must not."""
    found = (findings_of if report.command == SCAN else checked)(report.build, root)
    assert found[0].code in report.codes
    assert all(any(part in file for file in found[0].files) for part in report.files)
    edits = [[*read_edits(unpack(finding))] for finding in found]
    first = [pair for pairs, _, _ in edits[0][:1] for pair in pairs]
    assert [key for key in report.edit if not any(is_among(pair, {key: report.edit[key]}) for pair in first)] == [], (
        first
    )
    offered = [pair for one in edits for pairs, _, _ in one[:1] for pair in pairs]
    assert [pair for pair in offered if is_among(pair, report.never)] == []
