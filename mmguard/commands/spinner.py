"""Spinner on a terminal; without a terminal, it writes a line to standard error every 30 seconds."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
import threading
import time
from contextlib import suppress
from typing import Any

from mmguard.text import fit, visible_name

#: Seconds between two drawings on a terminal, and between two lines without one.
SECONDS, HEARTBEAT = 0.1, 30.0


class Spinner:
    """Spinner with the progress of a command, as in ``mmguard scan: train (12 s)``; ``text`` can be changed.

    Its thread writes without locks, because a forked process could inherit them, and without other packages.
    """

    def __init__(self, command: str, text: str) -> None:
        self.text = text
        self._command = command
        self.is_terminal = sys.stderr.isatty()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._write_lines, daemon=True)

    def __enter__(self) -> Spinner:
        self._thread.start()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._ended.set()
        self._thread.join()
        if self.is_terminal:
            _write(f'\r{" " * (_count_columns() - 1)}\r')

    def _write_lines(self) -> None:
        began = time.monotonic()
        for sign in itertools.cycle('|/-\\'):
            if self._ended.wait(SECONDS if self.is_terminal else HEARTBEAT):
                return
            line = visible_name(f'mmguard {self._command}: {self.text} ({time.monotonic() - began:.0f} s)')
            if not self.is_terminal:
                _write(f'{line}\n')
            else:
                _write(f'\r{fit(f"{sign} {line}", _count_columns() - 1)}\r')


def _count_columns() -> int:
    """Return the number of columns of the terminal on standard error (standard output may be a file)."""
    columns = 0
    with suppress(OSError):
        columns = os.get_terminal_size(2).columns
    return columns or shutil.get_terminal_size().columns


def _write(text: str) -> None:
    with suppress(OSError):
        os.write(2, text.encode(getattr(sys.stderr, 'encoding', None) or 'ascii', 'backslashreplace'))
