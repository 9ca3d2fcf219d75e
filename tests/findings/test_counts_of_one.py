"""A count of one has a singular noun, whatever it counts."""

from __future__ import annotations

import pytest

from mmguard.commands.explain.command import describe_no_error
from mmguard.commands.explain.reader import Reader
from mmguard.facts.labels import MapFacts
from mmguard.findings import LabelFacts, diagnose

#: Indices of VOC's palette, in one palette PNG that the loader reads as colors.
PALETTE = LabelFacts(
    {38: 9, 75: 9},
    3,
    255,
    histogram={0: 900, 38: 9, 75: 9},
    total=918,
    files=1,
    maps=MapFacts(forms={'palette8': 1}, raw={0: 900, 1: 9, 2: 9}, loaded_otherwise={'colors': 1}),
)


@pytest.mark.parametrize(
    ('facts', 'code', 'counts'),
    [
        (PALETTE, 'MG121', ['1 palette PNG', '1 file that the loader reads as colors']),
    ],
)
def test_evidence_counts_one(facts: LabelFacts, code: str, counts: list) -> None:
    (evidence,) = [found.evidence for found in diagnose(facts) if found.code == code]
    assert [count for count in counts if count not in evidence or f'{count}s' in evidence] == []


def test_a_log_of_one_line() -> None:
    reader = Reader()
    reader.read([b'Epoch 1\n'])
    assert 'no error that ended a training in 1 line\n' in describe_no_error(reader, 'train.log')


@pytest.mark.parametrize(('log', 'lines'), [(b'Epoch 1\n', 3), (b'Epoch 1\nmIoU: 0.41\n', 2)])
def test_a_log_without_a_known_score_says_so(log: bytes, lines: int) -> None:
    reader = Reader()
    reader.read([log])
    assert len(describe_no_error(reader, 'train.log').splitlines()) == lines
