"""Closed standard streams, and a reader that is gone, end a command in words or in silence, not in a failure."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Tuple

import numpy as np
import pytest
from PIL import Image

from mmguard.text import REPORT_ADVICE

SCAN = 'scan maps --num-classes 5 --processes 1'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / 'maps').mkdir()
    Image.fromarray(np.arange(1024, dtype=np.uint8).reshape(32, 32) % 5).save(tmp_path / 'maps/a.png')
    (tmp_path / 'train.log').write_text('IndexError: Target 7 is out of bounds.\n')
    return tmp_path


def run(folder: Path, words: str) -> Tuple[int, str]:
    """Return the exit code, and what is on standard output and standard error."""
    command = f'{sys.executable} -m mmguard.cli {words}'
    done = subprocess.run(['bash', '-c', command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode()


@pytest.mark.parametrize(
    ('words', 'code', 'begin'),
    [
        (f'{SCAN} >&-', 2, 'mmguard: '),
        (f'{SCAN} --json - >&-', 2, 'mmguard: '),
        ('explain MG102 >&-', 2, 'mmguard: '),
        ('fix maps -o out --num-classes 3 >&-', 2, 'mmguard: '),
        (f'{SCAN} >&- 2>&-', 2, ''),
        (f'{SCAN} 2>&- >/dev/null', 0, ''),
        (f'{SCAN} --json - 2>&- >/dev/null', 0, ''),
        ('scan nowhere 2>&-', 2, ''),
        ('nonsense 2>&-', 2, ''),
        ('explain - <&-', 2, 'mmguard explain: '),
        ('explain train.log <&- >/dev/null', 1, ''),
        (f'{SCAN} > /dev/full', 2, 'mmguard scan: '),
        ('explain | head -1; exit ${PIPESTATUS[0]}', 0, 'MG'),
    ],
)
def test_it_ends_in_words(folder: Path, words: str, code: int, begin: str) -> None:
    found, shown = run(folder, words)
    assert REPORT_ADVICE not in shown
    assert 'Traceback' not in shown
    assert shown.startswith(begin)
    assert bool(shown) == bool(begin)
    assert found == code or 'head' in words


def test_what_is_refused_changes_nothing(folder: Path) -> None:
    run(folder, 'fix maps -o out --num-classes 3 >&-')
    assert not (folder / 'out').exists()
