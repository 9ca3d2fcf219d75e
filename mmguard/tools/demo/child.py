"""A training in a process of its own, which never outlives the demo."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Callable

from mmguard.tools.child import python_command

#: Python reads no PYTHONIOENCODING here.
_CODE = """
import runpy
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding='utf-8', errors='replace', line_buffering=True)
runpy.run_module('mmguard.tools.demo.train', run_name='__main__', alter_sys=True)
"""
COLOURS = re.compile(r'\x1b\[[0-9;]*m')


def train_in_child(config: str, folder: Path, heard: Callable[[str], None]) -> int:
    """Train with a config of a folder in a child, which has ended when this returns or raises (Ctrl-C, too).

    ``runs/<stem>`` is the work directory; each line is heard as it comes, and written to ``runs/<stem>.txt``. Return
    the exit code.
    """
    stem = Path(config).stem
    (folder / 'runs').mkdir(exist_ok=True)
    command = [*python_command(_CODE), config, f'runs/{stem}', '--tethered']
    environment = {**os.environ, 'NO_COLOR': '1'}
    # Two threads that wait for each other on busy cores take ten times as long as one.
    environment.setdefault('OMP_NUM_THREADS', '1')
    child = subprocess.Popen(
        command,
        cwd=str(folder),
        env=environment,
        stdin=subprocess.PIPE,  # held open: the child ends when this process does
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding='utf-8',
        errors='replace',
    )
    assert child.stdout is not None
    try:
        with open(folder / 'runs' / f'{stem}.txt', 'w', encoding='utf-8') as log:
            for raw in child.stdout:
                line = COLOURS.sub('', raw.rstrip('\n'))
                log.write(line + '\n')
                heard(line)
        return child.wait()
    finally:
        child.kill()
        child.communicate()
