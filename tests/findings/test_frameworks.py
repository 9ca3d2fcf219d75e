"""Findings for those who train without OpenMMLab: the codes stay, whatever the advice is written for."""

from __future__ import annotations

from typing import Dict, List

import pytest
from example_facts import EXAMPLES

from mmguard.findings import LabelFacts
from mmguard.findings.engine import FRAMEWORKS, diagnose_for
from mmguard.findings.rules import RULES

CASES: Dict[str, Dict[str, object]] = {
    'MG101': dict(values={24: 9, 33: 5, 28: 1}, num_classes=19),
    'MG102': dict(values={5: 90}, num_classes=5),
    'MG104': dict(values={255: 9}, num_classes=5, ignore_index=None),
    'MG105': dict(values={-1: 90}, num_classes=5),
    'MG106': dict(values=dict.fromkeys(range(30, 240, 3), 3), num_classes=5),
    'MG107': dict(values={77: 90, 9: 4}, num_classes=5),
    'MG117': dict(values={81: 9, 90: 4}, num_classes=80),
    'MG127': dict(values={77: 3}, num_classes=5, files=1000, offending_files=1),
    'MG137': dict(values={1000 * value: 9 for value in range(20, 60)}, num_classes=5),
}


def facts_of(case: Dict[str, object], **more: object) -> LabelFacts:
    return LabelFacts(**{'total': 100000, 'files': 100, 'offending_files': 90, **case, **more})  # type: ignore[arg-type]


def codes(framework: str, facts: LabelFacts) -> List[str]:
    return [finding.code for finding in diagnose_for(framework, facts, ['/data/Dataset001_A'])]


@pytest.mark.parametrize('kind', ['pixels', 'instances'])
@pytest.mark.parametrize('code', CASES)
def test_a_framework_changes_no_order(code: str, kind: str) -> None:
    facts = facts_of(CASES[code], kind=kind, reasons={'label': 90})
    everywhere, in_pytorch = codes('openmmlab', facts), codes('pytorch', facts)
    assert in_pytorch
    assert in_pytorch == [code for code in everywhere if code in in_pytorch]
    assert codes('nnunet', facts) == everywhere
    if kind == 'pixels':
        assert (in_pytorch[0], everywhere[0]) == (code, code)


@pytest.mark.parametrize('framework', FRAMEWORKS)
def test_boxes_are_known_in_every_framework(framework: str) -> None:
    facts = facts_of(dict(kind='instances', values={}, reasons={'box_no_area': 9}))
    assert codes(framework, facts) == ['MG109']


@pytest.mark.parametrize('code', sorted(rule.code for rule in RULES if rule.pytorch and rule.code in EXAMPLES))
def test_the_words_of_every_advice_are_filled_in(code: str) -> None:
    found = [finding for finding in diagnose_for('pytorch', EXAMPLES[code]()) if finding.code == code]
    assert [finding.code for finding in found] == [code]
    assert '{' not in found[0].advice.replace('label_map={', '')


def test_an_unknown_framework_is_taken_for_openmmlab() -> None:
    facts = facts_of(CASES['MG102'])
    assert set(FRAMEWORKS) == {'openmmlab', 'pytorch', 'nnunet'}
    assert diagnose_for('another', facts) == diagnose_for('openmmlab', facts)
