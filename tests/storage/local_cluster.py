"""A scheduler and workers of dask as processes of their own, which can be killed one by one."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, List, Sequence

#: As a script, workers that generate records.
GENERATED = str(Path(__file__).with_name('generated_records.py'))


class Process:
    """A process that has begun when it has said so.

    Args:
        words (list[str]): Of Python's command line.
        begun (str): What it writes then, as a pattern; its first group is kept as ``said``.
    """

    def __init__(self, words: Sequence[str], begun: str) -> None:
        # Each one thread: there are more of them than cores.
        environment = {**os.environ, 'OMP_NUM_THREADS': '1'}
        self._process = subprocess.Popen([sys.executable, *words], stderr=subprocess.PIPE, text=True, env=environment)
        found = (re.search(begun, line) for line in self._process.stderr)
        self.said = next(match[1] for match in found if match)
        # What it goes on to write must not fill the pipe.
        threading.Thread(target=self._process.stderr.read, daemon=True).start()
        self.pid = self._process.pid

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


class Cluster:
    """A scheduler, and as many workers as one likes, of one thread each.

    Attributes:
        scheduler (Process): The scheduler.
        workers (list[Process]): Its workers.
    """

    def __init__(self, port: int = 0) -> None:
        self.workers: List[Process] = []
        words = ['-m', 'dask', 'scheduler', '--host', '127.0.0.1', '--port', str(port), '--no-dashboard']
        self.scheduler = Process(words, r'Scheduler at:\s+(tcp://\S+)')

    @property
    def address(self) -> str:
        return self.scheduler.said

    def add_workers(self, number: int, *more: str) -> None:
        """Starts workers, without a nanny that would start a killed one again."""
        words = ['-m', 'dask', 'worker', self.address, '--nthreads', '1', '--no-nanny', '--no-dashboard', *more]
        self.workers += [Process(words, r'Registered to:\s+(tcp://\S+)') for _ in range(number)]

    def kill(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()


@contextmanager
def cluster(workers: int, *more: str) -> Iterator[Cluster]:
    """A cluster that is ended behind the block."""
    started = Cluster()
    try:
        started.add_workers(workers, *more)
        yield started
    finally:
        started.kill()
