"""Of data sets without a fault nothing is found: the verdict alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from clean_heads import CLEAN_HEADS
from clean_sets import CLEAN
from situation import findings_of

ALL = {**CLEAN, **CLEAN_HEADS}


@pytest.mark.parametrize('name', list(ALL))
def test_a_clean_set_gets_the_verdict_alone(name: str, tmp_path: Path) -> None:
    findings = findings_of(ALL[name], tmp_path)
    assert [finding.code for finding in findings] == ['MG100'], [str(finding) for finding in findings]
