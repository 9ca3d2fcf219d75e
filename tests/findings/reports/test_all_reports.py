"""All 125 public reports: the first finding names the true cause, and advises nothing that would do harm.

34 of them are in ``test_real_reports``; what a batch, an error or a version decides is tested where these are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Dict, List, Optional

import detection_reports
import loop_reports
import pytest
import segmentation_reports
import volume_reports
from report import Report, first_of, said
from test_real_reports import REPORTS as EARLIER
from this_stack import is_here
from wanted import WANTED

from mmguard.findings import Finding

TABLES = (segmentation_reports, detection_reports, loop_reports)
REPORTS: Dict[str, Report] = {name: report for table in TABLES for name, report in table.REPORTS.items()}

#: Their threads end without a cause that is certain.
UNCERTAIN = {
    *(f'mmsegmentation#{number}' for number in (3568, 3080, 1180, 3753, 3617, 1553, 970, 789, 300)),
    'mmdetection#3212',
    'lyuwenyu/RT-DETR#346',
    'nnUNet#898',
    'nnUNet#1419',
    'XuJiacong/PIDNet#68',
    'VainF/DeepLabV3Plus-Pytorch#91',
}
BUILT = [name for name, report in REPORTS.items() if report.build is not None]


@lru_cache(maxsize=None)
def found(name: str) -> Optional[Finding]:
    return first_of(REPORTS[name])


def as_params(names: List[str]) -> List[object]:
    return [
        pytest.param(
            name, marks=pytest.mark.xfail(strict=True, reason=REPORTS[name].wrong) if REPORTS[name].wrong else ()
        )
        for name in names
    ]


@pytest.mark.parametrize('name', as_params([name for name in BUILT if is_here(REPORTS[name].codes)]))
def test_the_first_finding_names_the_true_cause(name: str) -> None:
    first = found(name)
    assert first is not None
    assert first.code in REPORTS[name].codes, first
    for words in (*REPORTS[name].says, *WANTED.get(name, ())):
        assert words in said(first), first


def test_what_is_wanted_is_of_a_report_that_is_built() -> None:
    assert set(WANTED) <= {*BUILT, *volume_reports.REPORTS}


def test_all_125_are_here() -> None:
    named = [*REPORTS, *volume_reports.REPORTS, *(name for name in EARLIER if name not in volume_reports.REPORTS)]
    assert len(named) == len(set(named)) == 125
    assert len(set(named) - UNCERTAIN) == 110
