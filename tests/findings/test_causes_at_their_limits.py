"""Causes that must not be found a step beside what they describe."""

from __future__ import annotations

from typing import Dict, List

import pytest

from mmguard.findings import LabelFacts, diagnose
from mmguard.findings.examples import even, pixels


def codes(facts: LabelFacts) -> List[str]:
    return [finding.code for finding in diagnose(facts)]


NUMBERED = {0: 200, 1: 190, 2: 150, 3: 120, 4: 90, 5: 60, 6: 40}


@pytest.mark.parametrize(
    ('files_with', 'sizes', 'is_found'),
    [
        (NUMBERED, {}, True),
        ({**NUMBERED, 3: 170}, {}, False),  # more files with object 3 than with object 2
        ({0: 200, 1: 100, 2: 99, 3: 98, 4: 97, 5: 96, 6: 59}, {}, False),  # the last in more than half of the first
        (NUMBERED, {1: 400_000}, False),  # a class is large, an object is not
    ],
)
def test_instance_maps(files_with: Dict[int, int], sizes: Dict[int, int], is_found: bool) -> None:
    stored = {0: 900_000, **{value: 50 * files_with[value] for value in range(1, 7)}, **sizes}
    assert ('MG170' in codes(pixels(stored, 2, maps={'files_with': files_with}))) is is_found


@pytest.mark.parametrize(
    ('files_with', 'is_found'),
    [
        ({0: 200, 1: 100, 255: 100}, True),
        ({0: 200, 1: 150, 255: 100}, False),  # some files hold both: void beside the object
        ({0: 200, 1: 198, 255: 2}, False),  # two files are no source
    ],
)
def test_mixed_conventions(files_with: Dict[int, int], is_found: bool) -> None:
    stored = {0: 900_000, 1: 50 * files_with[1], 255: 50 * files_with[255]}
    assert ('MG171' in codes(pixels(stored, 2, maps={'files_with': files_with}))) is is_found


def test_a_missing_label_file_is_not_called_unreadable() -> None:
    maps = {'missing_labels': ['a.png'], 'unreadable': {'missing': ['a.png']}}
    assert codes(pixels(even(0, 1, 2), 3, maps=maps)) == ['MG129']
    assert 'MG132' in codes(pixels(even(0, 1, 2), 3, maps={'unreadable': {'truncated': ['a.png']}}))
