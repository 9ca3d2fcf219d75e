"""The kernel for labels in Triton's interpreter, in a process of its own: it is chosen when triton is imported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('torch', minversion='2.4')
pytest.importorskip('triton', minversion='3.2')


@pytest.mark.timeout(600)
def test_every_label_in_the_interpreter() -> None:
    ran = subprocess.run(
        [
            sys.executable,
            '-m',
            'pytest',
            '-q',
            '-p',
            'no:cacheprovider',
            str(Path(__file__).with_name('every_label.py')),
        ],
        env={**os.environ, 'TRITON_INTERPRET': '1'},
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    assert ' passed' in ran.stdout
