"""The scripts in examples/: run as a user runs them, and imported for closer looks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from warm import Ended, run

EXAMPLES = Path(__file__).resolve().parents[2] / 'examples'
if str(EXAMPLES) not in sys.path:
    sys.path.insert(0, str(EXAMPLES))  # as python does for a script that lies there


#: As python does with a script; what torch and the frameworks warn of is not looked at.
START = """
import runpy, sys, warnings
warnings.simplefilter('ignore')
sys.path.insert(0, sys.argv[0].rpartition('/')[0])
runpy.run_path(sys.argv[0], run_name='__main__')
"""


def ended(script: str, *arguments: str) -> Ended:
    """What a script prints, both streams, and its exit code."""
    environment = {**os.environ, 'PYTHONPATH': str(EXAMPLES.parent), 'OMP_NUM_THREADS': '1'}
    return run(START, *arguments, name=str(EXAMPLES / script), environment=environment)


def output_of(script: str, *arguments: str) -> str:
    """What a script prints, both streams; it must end well."""
    done = ended(script, *arguments)
    assert done.returncode == 0, done.output[-4000:]
    return done.output


def last_words(script: str, missing: str = 'nothing') -> str:
    """Return the output of a script that does not start because a package is missing."""
    start = f'import runpy, sys; sys.modules[{missing!r}] = None; runpy.run_path({script!r}, run_name="__main__")'
    ended = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', start],
        env={**{k: v for k, v in os.environ.items() if k != 'RANK'}, 'PYTHONPATH': str(EXAMPLES.parent)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 1
    assert ended.stderr.count('\n') == 1, ended.stderr
    return ended.stderr
