"""examples/plain_pytorch.py: the stock loop dies, the guarded one learns and counts, the check says why."""

from __future__ import annotations

import re

import pytest
from example_scripts import ended, output_of

SCRIPT = 'plain_pytorch.py'
#: Every fourth of 64 masks has a corner of 4 x 4.
PLANTED, PIXELS = 16 * 16, 64 * 32 * 32


def error_of(option: str) -> str:
    done = ended(SCRIPT, option)
    assert done.returncode == 1
    return done.output


@pytest.mark.slow
def test_the_guarded_loop_learns_and_counts() -> None:
    lines = output_of(SCRIPT).splitlines()
    assert len(lines) == 3
    assert all(f'{PLANTED:,} of {PIXELS:,}' in line for line in lines)
    losses = [float(re.search(r'loss ([\d.]+)', line).group(1)) for line in lines]
    assert losses[-1] < losses[0] < 1.1


@pytest.mark.slow
def test_the_stock_loop_dies() -> None:
    assert 'IndexError: Target 3' in error_of('--stock')


@pytest.mark.slow
def test_the_check_says_why() -> None:
    text = error_of('--check')
    assert re.search(r'LabelGuardError: 32 of 8,192.*\(3, 0, 0\)', text)
    assert 'MG102' in text
