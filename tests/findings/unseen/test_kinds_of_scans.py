"""Kinds of causes that config and files show together: the first finding of a scan names the cause."""

from __future__ import annotations

from pathlib import Path

import pytest
from kinds_scans import KINDS
from situation import Situation, findings_of


@pytest.mark.parametrize('kind', [pytest.param(kind, id=name) for name, kind in KINDS.items()])
def test_the_first_finding_names_the_cause(kind: Situation, tmp_path: Path) -> None:
    first = findings_of(kind.build, tmp_path)[0]
    words = ' '.join([first.cause, first.evidence, first.advice, *first.files])
    assert first.code in kind.codes, f'{kind.truth}\n{first}'
    assert all(part in words for part in kind.says), first
    assert not any(part in words for part in kind.never), first
