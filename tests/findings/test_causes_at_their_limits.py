"""Causes that must not be found a step beside what they describe."""

from __future__ import annotations

from typing import List

from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.examples import even, pixels


def codes(facts: LabelFacts) -> List[str]:
    return [finding.code for finding in diagnose(facts)]


def test_a_missing_label_file_is_not_called_unreadable() -> None:
    maps = {'missing_labels': ['a.png'], 'unreadable': {'missing': ['a.png']}}
    assert codes(pixels(even(0, 1, 2), 3, maps=maps)) == ['MG129']
    assert 'MG132' in codes(pixels(even(0, 1, 2), 3, maps={'unreadable': {'truncated': ['a.png']}}))
