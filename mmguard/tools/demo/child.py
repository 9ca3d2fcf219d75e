"""A training in a process of its own, which never outlives the demo."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Callable

COLOURS = re.compile(r'\x1b\[[0-9;]*m')


def train_in_child(config: str, folder: Path, heard: Callable[[str], None]) -> int:
    """Train with a config in a child process, which has ended when this returns or raises (Ctrl-C, too).

    Args:
        config (str): Name of the config file in ``folder``; ``runs/<its stem>`` becomes the work directory.
        folder (Path): Where the child runs.
        heard (callable): Called with each line of the child, as it comes. They also go to ``runs/<stem>.txt``.

    Returns:
        int: the child's exit code.
    """
    stem = Path(config).stem
    (folder / 'runs').mkdir(exist_ok=True)
    command = [sys.executable, '-u', '-m', 'mmguard.tools.demo.train', config, f'runs/{stem}', '--tethered']
    # The child must find what this process finds, though it runs elsewhere.
    paths = os.pathsep.join(os.path.abspath(path) for path in sys.path)
    environment = {**os.environ, 'PYTHONPATH': paths, 'PYTHONIOENCODING': 'utf-8', 'NO_COLOR': '1'}
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
