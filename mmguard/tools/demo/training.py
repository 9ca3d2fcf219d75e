"""A training in a process of its own, which never outlives the demo, and its output: how it ended, what it logged."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence

from mmguard.tools.child import python_command
from mmguard.tools.demo.dataset import DataSet

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


RECORD = re.compile(r'^\d\d/\d\d \d\d:\d\d:\d\d - mmengine - [A-Z]+ - (?P<text>.*)$')
ITERATION = re.compile(r'^Iter\(train\) +\[ *(?P<number>\d+)/(?P<total>\d+)\].* loss: (?P<loss>\S+)')
CUDA = 'CUDA error: device-side assert triggered'
TRACEBACK = 'Traceback (most recent call last)'


def last_traceback(output: List[str]) -> List[str]:
    """Return the end of the last traceback: its three innermost frames and the exception; empty without any."""
    starts = [number for number, line in enumerate(output) if line.startswith(TRACEBACK)]
    body = output[starts[-1] + 1 :] if starts else []
    end = next((number for number, line in enumerate(body) if line and not line.startswith(' ')), len(body) - 1)
    frames = [number for number, line in enumerate(body[:end]) if line.startswith('  File "')]
    return body[frames[-3] if len(frames) > 2 else 0 : end + 1]


def is_label_error(output: List[str], planted: Mapping[str, Mapping[int, int]]) -> bool:
    """Return True if a planted label ended the training."""
    found = re.search(r'Target (\d+) is out of bounds', '\n'.join(last_traceback(output)))
    values = {value for counts in planted.values() for value in counts}
    return CUDA in '\n'.join(output) or (found is not None and int(found[1]) in values)


class Narrator:
    """Says the lines of the guard, and the loss of each iteration, as they come; keeps iteration -> loss."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.losses: Dict[int, float] = {}
        self._say = say
        self._in_guard = False

    def hear(self, line: str) -> None:
        """Take one line of the log."""
        record = RECORD.match(line)
        text = line if record is None else record['text']
        self._in_guard = self._in_guard if record is None else text.startswith('guard:')
        iteration = ITERATION.match(text)
        if iteration:
            self.losses[int(iteration['number'])] = float(iteration['loss'])
            self._say(f'{iteration["number"]}/{iteration["total"]}  loss {float(iteration["loss"]):.2f}')
        elif self._in_guard:
            self._say(text)


def objections(logged: Sequence[Mapping[str, Any]], dataset: DataSet, iters: int, batch_size: int) -> List[str]:
    """Return what of the files in a log (:meth:`GuardLog.files`) does not fit what was planted, value by value.

    The sampler hands out every file once before any comes again, so it is known how often each must have been met.
    """
    least, rest = divmod(iters * batch_size, len(dataset.labels))
    counted = {file['source']: file for file in logged}
    found = [f'{source}: logged, nothing was planted' for source in counted if source not in dataset.planted]
    for source, planted in dataset.planted.items():
        file = counted.get(source, dict(values={}, skipped=0))
        fitting = [
            {value: times * count for value, count in planted.items() if times} for times in {least, least + bool(rest)}
        ]
        if file['values'] not in fitting or file['skipped'] != sum(file['values'].values()):
            found.append(
                f'{source}: logged {file["values"]}, planted {planted}, met {least} times'
                + ' or once more' * bool(rest)
            )
    return found
