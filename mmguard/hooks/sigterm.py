"""SIGTERM, heard even while Python is not running: in a collective that waits for a rank, say."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
from types import FrameType
from typing import Any, Callable, ClassVar, Dict, Iterator, Optional, Set, Union

#: Seconds that the main thread is given to hear it. Clusters wait 30 until they kill.
PATIENCE = 3.0


class SigtermWatch:
    """Calls back once when SIGTERM comes; the process then ends as it would have without this.

    Python runs handlers in the main thread, between two steps of the interpreter. A main thread that waits inside of a
    collective makes none, and with a handler in place the signal would not even end the process any more. So a second
    thread listens, too, and after ``PATIENCE`` seconds does both in its stead.

    Args:
        call (Callable): Takes nothing.

    Raises:
        ValueError: Made in another thread than the main one; Python takes signals nowhere else.
    """

    #: The one that listens now; in a process that was forked from this one, nobody does.
    _active: Optional[SigtermWatch] = None
    #: Thread -> the signals that it had blocked before it began to fork.
    _masks: ClassVar[Dict[int, Set[int]]] = {}

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._heard = threading.Event()
        self._held = self._late = False
        self._before: Union[Callable[[int, Optional[FrameType]], Any], int, None] = signal.signal(
            signal.SIGTERM, self._on_signal
        )
        self._pipe = self._listen()
        SigtermWatch._active = self

    def stop(self) -> None:
        """Puts back what was there before; in the main thread."""
        if SigtermWatch._active is not self:
            return
        SigtermWatch._active = None
        if self._pipe is not None:
            signal.set_wakeup_fd(-1)
            os.close(self._pipe)  # ends the thread
        signal.signal(signal.SIGTERM, self._before)

    @contextlib.contextmanager
    def put_off(self) -> Iterator[None]:
        """While a file is written: SIGTERM ends the process behind it, not amid; for the main thread."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
            if self._late:
                self._on_signal(signal.SIGTERM, None)

    def _on_signal(self, number: int, frame: Optional[FrameType]) -> None:
        self._heard.set()
        if self._held:
            self._late = True
            return
        self._call()
        self.stop()
        os.kill(os.getpid(), signal.SIGTERM)  # and then as it would have been

    def _listen(self) -> Optional[int]:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        other = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        if other != -1:  # an event loop listens there already: leave it to it
            signal.set_wakeup_fd(other)
            os.close(reading)
            os.close(writing)
            return None
        threading.Thread(target=self._stand_in, args=(reading,), name='mmguard-sigterm', daemon=True).start()
        return writing

    def _stand_in(self, reading: int) -> None:
        with open(reading, 'rb', buffering=0) as numbers:
            while True:
                number = numbers.read(1)  # of every signal that Python has a handler for
                if not number:
                    return
                if number[0] == signal.SIGTERM and not self._heard.wait(PATIENCE):
                    self._call()
                    if self._before == signal.SIG_DFL and not self._heard.is_set():
                        _end_by_sigterm()

    @classmethod
    def _before_fork(cls) -> None:
        """Until the forked process has forgotten this watch: what ends it at once would be written to our pipe."""
        if cls._active is not None:
            cls._masks[threading.get_ident()] = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])

    @classmethod
    def _after_fork(cls) -> None:
        mask = cls._masks.pop(threading.get_ident(), None)
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    @classmethod
    def _forget(cls) -> None:
        """In a forked process: its signals are not the parent's, whose pipe it has inherited."""
        watch, cls._active = cls._active, None
        if watch is not None:
            if watch._pipe is not None:
                signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGTERM, watch._before)
        cls._after_fork()


if hasattr(os, 'register_at_fork'):
    os.register_at_fork(
        before=SigtermWatch._before_fork,
        after_in_parent=SigtermWatch._after_fork,
        after_in_child=SigtermWatch._forget,
    )


def _end_by_sigterm() -> None:
    # signal.signal works in the main thread alone, which is stuck.
    default = ctypes.CDLL(None).signal
    default.argtypes, default.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_void_p
    default(signal.SIGTERM, None)
    os.kill(os.getpid(), signal.SIGTERM)
