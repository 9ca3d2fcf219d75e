"""The first finding of a scan of nnU-Net's raw data names the true cause, and its advice does no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds_nnunet import SITUATIONS
from situation import findings_of

from mmguard.findings import Finding


def said(finding: Finding) -> str:
    return ' '.join([finding.cause, finding.evidence, finding.advice, *finding.files])


@pytest.mark.parametrize('name', list(SITUATIONS))
def test_the_first_finding_names_the_true_cause(name: str, tmp_path: Path) -> None:
    situation = SITUATIONS[name]
    first = findings_of(situation.build, tmp_path)[0]
    assert first.code in situation.codes, f'{situation.truth}\n{first}'
    for words in situation.says:
        assert words in said(first), first
    for words in situation.never:
        assert words not in said(first), first
