"""The scripts in examples/: run as a user runs them, and imported for closer looks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / 'examples'
if str(EXAMPLES) not in sys.path:
    sys.path.insert(0, str(EXAMPLES))  # as python does for a script that lies there


def output_of(script: str, *arguments: str) -> str:
    """What a script prints, both streams; it must end well."""
    ended = subprocess.run(
        [sys.executable, '-W', 'ignore', str(EXAMPLES / script), *arguments],
        env={**os.environ, 'PYTHONPATH': str(EXAMPLES.parent), 'OMP_NUM_THREADS': '1'},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    return ended.stdout
