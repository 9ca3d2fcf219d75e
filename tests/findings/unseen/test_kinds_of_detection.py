"""Kinds of causes in detection: the first finding names the cause, and no first advice does harm."""

from __future__ import annotations

from pathlib import Path
from typing import List

import kinds_boxes
import kinds_classes
import kinds_fresh
import kinds_fresh_2_boxes
import kinds_fresh_2_maps
import kinds_fresh_3_files
import pytest
from kinds_classes import Asked
from screens import fits_a_screen
from situation import findings_of

from mmguard.config.read import read_config
from mmguard.findings import Finding
from mmguard.findings.engine import diagnose

KINDS = {
    **kinds_classes.KINDS,
    **kinds_boxes.KINDS,
    **kinds_fresh.FILES,
    **kinds_fresh.AFTER,
    **kinds_fresh_2_boxes.BOXES,
    **kinds_fresh_2_maps.MAPS,
    **kinds_fresh_3_files.FILES,
}
#: Nothing is wrong, or nothing is known to be.
FINE = ('MG100',)


def _found(one: Asked, root: Path) -> List[Finding]:
    if one.command == 'scan':
        return findings_of(one.build, root)
    found = diagnose(config=read_config(str(one.build(root))))
    for finding in found:
        fits_a_screen(finding)
    return found


def _first_advice(finding: Finding) -> str:
    return f'{finding.edits[0].question} {finding.edits[0].text}' if finding.edits else finding.advice


@pytest.mark.parametrize('name', list(KINDS))
def test_the_first_finding_names_the_cause(name: str, tmp_path: Path) -> None:
    one = KINDS[name]
    found = _found(one, tmp_path)
    codes = [finding.code for finding in found]
    if not one.codes:
        assert [code for code in codes if code not in FINE] == [], [str(finding) for finding in found]
        return
    assert {*codes[:1]} & {*one.codes}, f'{one.truth}\n{[str(finding) for finding in found]}'
    first = found[0]
    words = ' '.join([first.cause, first.evidence, first.advice, *first.files])
    assert all(part in words for part in one.says), first
    assert all(part in _first_advice(first) for part in one.first), _first_advice(first)
    for finding in found:
        assert not any(part in _first_advice(finding) for part in one.never), _first_advice(finding)
