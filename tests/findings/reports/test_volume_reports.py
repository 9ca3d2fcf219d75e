"""Public reports about nnU-Net's raw data: the first finding names the true cause, and advises no harm."""

from __future__ import annotations

import pytest
from report import first_of, said
from volume_reports import REPORTS
from wanted import WANTED


@pytest.mark.parametrize('name', list(REPORTS))
def test_the_first_finding_names_the_true_cause(name: str) -> None:
    first = first_of(REPORTS[name])
    assert first is not None
    assert first.code in REPORTS[name].codes, first
    for words in WANTED.get(name, ()):
        assert words in said(first), first
    for words in REPORTS[name].never:
        assert words not in said(first), first
