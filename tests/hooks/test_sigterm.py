"""SIGTERM to a process whose main thread hears nothing, and to processes that were forked from it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Iterator, List

import pytest

from mmguard.hooks import sigterm
from mmguard.hooks.sigterm import SigtermWatch


@pytest.fixture
def calls() -> List[str]:
    return []


@pytest.fixture(autouse=True)
def handler_is_given_back() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    assert signal.getsignal(signal.SIGTERM) is before
    assert signal.set_wakeup_fd(-1) == -1


def test_a_main_thread_that_runs_hears_it_once_and_hands_it_on(calls: List[str]) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: calls.append('the one before'))
    try:
        watch = SigtermWatch(lambda: calls.append('called'))
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
        assert calls == ['called', 'the one before']
        watch.stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert calls == ['called', 'the one before', 'the one before']
    finally:
        signal.signal(signal.SIGTERM, before)


def test_it_can_be_put_off(calls: List[str]) -> None:
    before = signal.signal(signal.SIGTERM, lambda *_: calls.append('ends'))
    try:
        watch = SigtermWatch(lambda: calls.append('called'))
        with watch.put_off():
            os.kill(os.getpid(), signal.SIGTERM)
            calls.append('written')
        assert calls == ['written', 'called', 'ends']
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_thread_ends_with_it() -> None:
    for _ in range(3):
        SigtermWatch(lambda: None).stop()
    deadline = time.monotonic() + 5
    while any(thread.name == 'mmguard-sigterm' for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


STUCK = """
import ctypes, os, signal, sys
from mmguard.hooks import sigterm
sigterm.PATIENCE = 0.3
if sys.argv[1] == 'own':
    signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'own '))
sigterm.SigtermWatch(lambda: os.write(1, b'called '))
os.write(1, b'ready ')
mutex = ctypes.create_string_buffer(128)
libc = ctypes.CDLL(None)
libc.pthread_mutex_lock(mutex)
libc.pthread_mutex_lock(mutex)  # of itself: never comes back, whatever signal comes
"""


@pytest.mark.slow
@pytest.mark.parametrize('before', ['default', 'own'])
def test_a_main_thread_that_is_stuck_has_a_stand_in(before: str) -> None:
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, '-c', STUCK, before], stdout=subprocess.PIPE, env={**os.environ, 'PYTHONPATH': str(root)}
    )
    assert child.stdout is not None
    try:
        assert os.read(child.stdout.fileno(), 6) == b'ready '
        time.sleep(0.2)
        child.send_signal(signal.SIGTERM)
        assert os.read(child.stdout.fileno(), 7) == b'called '
        if before == 'default':
            assert child.wait(timeout=10) == -signal.SIGTERM
        else:
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(timeout=0.5)  # what to do is the handler's matter, and it cannot run
    finally:
        child.kill()
        child.stdout.close()
        child.wait()


def _waits(seconds: float) -> None:
    time.sleep(seconds)


def test_forked_workers_that_are_ended_call_nothing(calls: List[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """multiprocessing's pools, of an evaluation say, end their workers by SIGTERM."""
    monkeypatch.setattr(sigterm, 'PATIENCE', 0.1)
    watch = SigtermWatch(lambda: calls.append('called'))
    try:
        with multiprocessing.get_context('fork').Pool(2) as pool:
            pool.map(_waits, [0.01, 0.01])
            for _ in range(10):
                worker = multiprocessing.get_context('fork').Process(target=_waits, args=(20,))
                worker.start()
                worker.terminate()  # before it has run a single step, more often than not
                worker.join(10)
                assert worker.exitcode == -signal.SIGTERM
        assert signal.SIGTERM not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
        time.sleep(0.4)
        assert calls == []
    finally:
        watch.stop()
