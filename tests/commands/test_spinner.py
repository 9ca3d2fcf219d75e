"""A command that takes time shows that it works: a spinner on a terminal, lines without one."""

from __future__ import annotations

import io
import os
import re
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import List, Optional
from unicodedata import east_asian_width

import numpy as np
import pytest
from label_files import write_copies
from warm import run

from mmguard.commands.spinner import Spinner

pytest.importorskip('mmseg')

FCN = 'mmseg::fcn/fcn_r50-d8_4xb2-40k_cityscapes-512x1024.py'
#: The command line, whose lines come without a pause.
SOURCE = (
    'import sys\nfrom mmguard.commands import spinner\nspinner.HEARTBEAT = 0.001\n'
    'from mmguard.cli import main\nsys.exit(main(sys.argv[1:]))\n'
)
LOG = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nIndexError: Target 7 is out of bounds.\n'
COMMANDS = {
    'scan': ['scan', 'maps', '--num-classes', '3', '--processes', '1'],
    'check': ['check', FCN],
    'dry-run': ['dry-run', FCN, '--only', 'class-weights'],
    'apply': ['apply', FCN, '-o', 'guarded.py', '--no-verify'],
    'fix': ['fix', 'maps', '--out', 'fixed', '--num-classes', '3', '--on-invalid', 'ignore'],
    'explain': ['explain', 'train.log', '--data', 'maps', '--num-classes', '3'],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_copies(tmp_path / 'maps', np.tile(np.array([0, 1, 2, 7], np.uint8), (32, 8)))
    (tmp_path / 'train.log').write_text(LOG)
    return tmp_path


def run_in_terminal(words: List[str], folder: Path, columns: int = 80, out: Optional[int] = None) -> str:
    """Return all that a Python program writes to a terminal; ``out`` takes its standard output."""
    pty, fcntl, termios = map(pytest.importorskip, ('pty', 'fcntl', 'termios'))
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    environment = dict(os.environ, TERM='dumb')
    environment.pop('COLUMNS', None)
    streams = dict(stdin=theirs, stdout=theirs if out is None else out, stderr=theirs)
    with subprocess.Popen([sys.executable, *words], cwd=folder, env=environment, **streams):
        os.close(theirs)
        written = b''
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:  # Linux says so at the end
                piece = b''
            if not piece:
                os.close(ours)
                return written.decode()
            written += piece


def displayed(written: str) -> List[str]:
    """Return the lines of a terminal after a carriage return has overwritten what was there."""
    lines = []
    for line in written.replace('\r\n', '\n').split('\n'):
        cells: List[str] = []
        for part in line.split('\r'):
            cells[: len(part)] = part
        lines.append(''.join(cells).rstrip())
    return lines


@pytest.mark.parametrize('name', COMMANDS)
def test_without_a_terminal_lines_on_standard_error_show_that_it_works(folder, name):
    ended = run(SOURCE, *COMMANDS[name], folder=str(folder))
    assert ended.returncode in (0, 1), ended.output
    assert re.search(rf'^mmguard {name}: .* \(\d+ s\)$', ended.output, re.MULTILINE), ended.output


def test_a_scan_says_how_many_files_are_read(folder):
    assert '8 files' in run(SOURCE, *COMMANDS['scan'], folder=str(folder)).output


@pytest.mark.slow
@pytest.mark.parametrize('name', ['scan', 'dry-run', 'check'])
def test_on_a_terminal_the_spinner_comes_first_and_leaves_nothing(folder, name):
    written = run_in_terminal(['-m', 'mmguard.cli', *COMMANDS[name]], folder)
    assert written.startswith(f'\r| mmguard {name}: ')
    # No result shares a line with it.
    assert [line for line in displayed(written) if f' mmguard {name}: ' in line] == []


@pytest.mark.parametrize('text', ['maps ' * 20, '数据集/中文路径/标注' * 4, 'two\nlines'])
@pytest.mark.parametrize('columns', [30, 50])
def test_the_spinner_stays_on_one_line(text, columns, tmp_path):
    source = (
        'import sys, time\nfrom mmguard.commands.spinner import Spinner\n'
        'with Spinner("scan", sys.argv[1]): time.sleep(0.3)'
    )
    written = run_in_terminal(['-c', source, text], tmp_path, columns, subprocess.DEVNULL)
    widths = [sum(2 if east_asian_width(char) in 'WF' else 1 for char in line) for line in re.split('[\r\n]+', written)]
    assert (max(widths), written.count('\n')) == (columns - 1, 0)


def test_lines_are_escaped_and_leave_standard_output_alone(capfd, monkeypatch):
    monkeypatch.setattr('mmguard.commands.spinner.HEARTBEAT', 0.01)
    with Spinner('scan', 'maps') as spinner:
        spinner.text = 'tr\x1b[2Jain'
        time.sleep(0.1)
    out, err = capfd.readouterr()
    assert (out, err.splitlines()[-1]) == ('', r'mmguard scan: tr\x1b[2Jain (0 s)')


class Tee:
    """Standard error as a config may replace it: with what ``print`` needs, and no more."""

    def write(self, text: str) -> None:
        sys.__stderr__.write(text)


@pytest.mark.parametrize('replaced', [Tee(), io.StringIO(), None], ids=['Tee', 'StringIO', 'None'])
def test_a_program_may_replace_standard_error(replaced, capfd, monkeypatch):
    with Spinner('check', 'config.py') as spinner:
        spinner.is_terminal = True
        monkeypatch.setattr(sys, 'stderr', replaced)
    assert capfd.readouterr().err.startswith('\r ')
