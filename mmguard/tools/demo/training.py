"""A training in a child process, and its output."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Callable, Dict, List

from mmguard.tools.child import build_python_command

#: Code of the child. It sets the encoding of its streams, because it runs without PYTHONIOENCODING.
_CHILD_CODE = """
import runpy
for stream in (sys.stdout, sys.stderr):
    stream.reconfigure(encoding='utf-8', errors='replace', line_buffering=True)
runpy.run_module('mmguard.tools.demo.train', run_name='__main__', alter_sys=True)
"""
COLORS = re.compile(r'\x1b\[[0-9;]*m')


def train_in_child(config: str, folder: Path, on_line: Callable[[str], None]) -> int:
    """Train with a config in a child process, which has ended when this returns or raises (also on Ctrl-C).

    ``runs/<stem>`` is the work directory. Each line is passed to ``on_line`` as it comes, and written to
    ``runs/<stem>.txt``. Return the exit code.
    """
    stem = Path(config).stem
    (folder / 'runs').mkdir(exist_ok=True)
    command = [*build_python_command(_CHILD_CODE), config, f'runs/{stem}']
    environment = {**os.environ, 'NO_COLOR': '1'}
    # Two threads waiting for each other on busy cores take ten times as long as one.
    environment.setdefault('OMP_NUM_THREADS', '1')
    child = subprocess.Popen(
        command,
        cwd=str(folder),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding='utf-8',
        errors='replace',
    )
    assert child.stdout is not None
    try:
        with open(folder / 'runs' / f'{stem}.txt', 'w', encoding='utf-8') as log:
            for raw in child.stdout:
                line = COLORS.sub('', raw.rstrip('\n'))
                log.write(line + '\n')
                on_line(line)
        return child.wait()
    finally:
        child.kill()
        child.communicate()


RECORD = re.compile(r'^\d\d/\d\d \d\d:\d\d:\d\d - mmengine - [A-Z]+ - (?P<text>.*)$')
ITERATION = re.compile(r'^Iter\(train\) +\[ *(?P<number>\d+)/(?P<total>\d+)\].* loss: (?P<loss>\S+)')
CUDA_ERROR = 'CUDA error: device-side assert triggered'
TRACEBACK_HEADER = 'Traceback (most recent call last)'


def find_last_traceback(output: List[str]) -> List[str]:
    """Return the end of the last traceback: its three innermost frames and the exception; empty if none was found."""
    starts = [number for number, line in enumerate(output) if line.startswith(TRACEBACK_HEADER)]
    body = output[starts[-1] + 1 :] if starts else []
    end = next((number for number, line in enumerate(body) if line and not line.startswith(' ')), len(body) - 1)
    frames = [number for number, line in enumerate(body[:end]) if line.startswith('  File "')]
    return body[frames[-3] if len(frames) > 2 else 0 : end + 1]


class Narrator:
    """Printer of the guard's lines and of each iteration's loss, which it keeps."""

    def __init__(self, print_line: Callable[[str], None]) -> None:
        self.losses: Dict[int, float] = {}
        self._say = print_line
        self._in_guard = False

    def hear(self, line: str) -> None:
        """Read one line of the log."""
        record = RECORD.match(line)
        text = line if record is None else record['text']
        self._in_guard = self._in_guard if record is None else text.startswith('guard:')
        iteration = ITERATION.match(text)
        if iteration:
            self.losses[int(iteration['number'])] = float(iteration['loss'])
            self._say(f'{iteration["number"]}/{iteration["total"]}  loss {float(iteration["loss"]):.2f}')
        elif self._in_guard:
            self._say(text)
