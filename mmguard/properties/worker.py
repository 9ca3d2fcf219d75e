"""Process of its own for a program of the user: timed, bounded in memory, silent, without network."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
import traceback
from typing import Any, Callable, Dict, NamedTuple, Optional

from mmguard.text.failures import words_of

#: Seconds between two looks at the memory of the process.
_PACE = 0.2
#: Bytes that the process may hold.
MEMORY = 8 << 30
#: Environment of the process: hubs are not asked, and threads do not wait for each other.
_ENVIRONMENT = {'HF_HUB_OFFLINE': '1', 'TRANSFORMERS_OFFLINE': '1', 'HF_DATASETS_OFFLINE': '1'}


class Reply(NamedTuple):
    """Answer of a worker.

    Attributes:
        value: What the function returned, as JSON knows it.
        failure (Failure, optional): Reason why the value is missing.
    """

    value: Any = None
    failure: Optional[Failure] = None


class Failure(NamedTuple):
    """Exception of a program, or the end of its process.

    Attributes:
        kind (str): Name of the exception's class; ``'hang'``, ``'crash'`` or ``'memory'`` where the process ended.
        message (str): One line.
        place (str): ``file:line`` where it was raised; empty where it is not known.
    """

    kind: str
    message: str
    place: str = ''

    def __str__(self) -> str:
        return f'{self.message} ({self.place})' if self.place else self.message

    @classmethod
    def describe(cls, error: BaseException) -> Failure:
        """Describe an exception, with the last line that is not one of torch's."""
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if not _is_library(frame.filename)] or list(frames)
        place = f'{own[-1].filename}:{own[-1].lineno}' if own else ''
        return cls(type(error).__name__, words_of(error), place)


def _is_library(file: str) -> bool:
    return os.path.join('site-packages', 'torch', '') in file or file.startswith('<')


class Worker:
    """Runs functions, one after another, in a spawned process; starts it again after a crash or a hang.

    Functions must be importable, their arguments picklable and what they return JSON. They run with standard streams
    that lead nowhere. What their modules remember stays until the process ends.

    Args:
        memory (int): Bytes above which the process is ended, where the system says how many it holds.
    """

    def __init__(self, memory: int = MEMORY) -> None:
        self._memory = memory
        self._context = multiprocessing.get_context('spawn')
        self._process: Any = None
        self._connection: Any = None

    def ask(self, function: Callable[..., Any], *args: Any, seconds: float) -> Reply:
        """Call a function in the process and wait for its value. Never raises what the function raises."""
        ends = time.monotonic() + seconds
        try:
            if self._process is None:
                self._start()
            self._connection.send((function, args))
            while not self._connection.poll(max(0.0, min(_PACE, ends - time.monotonic()))):
                if time.monotonic() >= ends:
                    return self._end(Failure('hang', f'did not end within {seconds:.0f} s'))
                if self._held() > self._memory:
                    return self._end(Failure('memory', f'holds more than {self._memory / 2**30:.0f} GiB'))
            answer = json.loads(self._connection.recv_bytes())
        except (EOFError, OSError, ValueError):
            self._process.join(5)
            code = self._process.exitcode
            how = f'signal {-code}' if code is not None and code < 0 else f'exit code {code}'
            return self._end(Failure('crash', f'ended its process ({how})'))
        return Reply(failure=Failure(*answer['failure'])) if 'failure' in answer else Reply(answer['value'])

    def close(self) -> None:
        """End the process and all that it started."""
        if self._process is not None:
            if self._process.pid:
                with contextlib.suppress(OSError, AttributeError):
                    os.killpg(self._process.pid, signal.SIGKILL)
            self._process.kill()
            self._process.join()
            self._connection.close()
            self._process = self._connection = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=_serve, args=(theirs, os.getcwd()), daemon=True)
        self._process.start()
        theirs.close()

    def _end(self, failure: Failure) -> Reply:
        self.close()
        return Reply(failure=failure)

    def _held(self) -> int:
        try:
            with open(f'/proc/{self._process.pid}/statm', encoding='ascii') as file:
                return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')
        except (OSError, ValueError, IndexError, AttributeError):  # no Linux
            return 0


def _serve(connection: Any, folder: str) -> None:
    _isolate()
    os.chdir(folder)
    while True:
        try:
            function, args = connection.recv()
        except (EOFError, OSError):
            return
        answer: Dict[str, Any]
        try:
            answer = {'value': function(*args)}
            data = json.dumps(answer)
        except BaseException as error:  # SystemExit, too: it is a program of the user's
            data = json.dumps({'failure': Failure.describe(error)})
        connection.send_bytes(data.encode())


def _isolate() -> None:
    if hasattr(os, 'setsid'):  # Ctrl-C is for the parent, which ends the whole group
        os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.environ.update(_ENVIRONMENT)
    sys.addaudithook(_refuse_network)


def _refuse_network(event: str, args: Any) -> None:
    if event == 'socket.getaddrinfo' or (event == 'socket.connect' and isinstance(args[1], tuple)):
        raise ConnectionRefusedError('mmguard runs the program without network')
