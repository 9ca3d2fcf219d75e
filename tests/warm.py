"""Programs in processes of their own, without the seconds that each would take to import torch and the frameworks.

A process that has imported them, and done nothing else, is forked for each program: the fork server of the standard
library. What is to be seen of imports begins where torch alone is imported: ``run_beside_torch``. What is to be seen of
an interpreter's start needs a new one: ``subprocess``.
"""

from __future__ import annotations

import atexit
import functools
import gc
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
import types
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, NoReturn, Optional, Sequence

#: Those that are not installed are left out.
IMPORTED = (
    'torch.distributed',
    'torch.nn.parallel',
    'torch._dynamo',
    'mmengine.runner',
    'mmseg.apis',
    'mmdet.apis',
    'pkg_resources',
    'mmguard',
    'mmguard.findings',
)

_FORKED: Any = multiprocessing.get_context('forkserver')
_FORKED.set_forkserver_preload(list(IMPORTED))


class Ended(NamedTuple):
    """What a program said, both streams, and how it ended."""

    output: str
    returncode: int


class Program:
    """Python source, running in a process of its own.

    Args:
        source (str): It.
        arguments (sequence[str]): Its ``sys.argv``, the name first.
        environment (dict, optional): All of its variables.
        folder (str, optional): The working directory.
    """

    def __init__(
        self,
        source: str,
        arguments: Sequence[str],
        environment: Optional[Dict[str, str]] = None,
        folder: Optional[str] = None,
    ) -> None:
        handle, self._output = tempfile.mkstemp()
        os.close(handle)
        variables = dict(os.environ if environment is None else environment)
        asked = (source, list(arguments), variables, folder or os.getcwd(), self._output)
        self._process = _FORKED.Process(target=_run, args=asked)
        self._process.start()

    @property
    def output(self) -> str:
        """What it has said so far, both streams."""
        return Path(self._output).read_text(encoding='utf-8')

    def ended(self, timeout: float) -> Ended:
        """Waits for the end.

        Raises:
            subprocess.TimeoutExpired: It did not end in time: a hang is a failure.
        """
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired('python', timeout, self.output.encode())
        return Ended(self.output, self._process.exitcode)

    def kill(self) -> None:
        """Ends it, where it has not ended, and removes what it said."""
        self._process.kill()
        self._process.join()
        os.unlink(self._output)


def run_all(programs: List[Program], timeout: float) -> List[Ended]:
    """How programs that were started together ended; none outlives this call."""
    until = time.monotonic() + timeout
    try:
        return [program.ended(max(0.0, until - time.monotonic())) for program in programs]
    finally:
        for program in programs:
            program.kill()


#: With the arguments of torchrun.
TORCHRUN = 'from torch.distributed.run import main\nmain()'


def run(
    source: str,
    *arguments: str,
    name: str = '-c',
    environment: Optional[Dict[str, str]] = None,
    folder: Optional[str] = None,
    timeout: float = 240,
) -> Ended:
    """Runs one program to its end; ``name`` is its file in tracebacks, and ``sys.argv[0]``."""
    return run_all([Program(source, [name, *arguments], environment, folder)], timeout)[0]


def is_group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def run_beside_torch(
    source: str, *arguments: str, environment: Optional[Dict[str, str]] = None
) -> subprocess.CompletedProcess[str]:
    """Runs one program to its end in a process that has imported torch, and nothing that is tested or guarded."""
    variables = dict(os.environ if environment is None else environment)
    server = _beside_torch()
    assert server.stdin is not None
    with tempfile.TemporaryDirectory() as folder:
        streams = [os.path.join(folder, name) for name in ('out', 'err')]
        server.stdin.write(json.dumps([source, ['-c', *arguments], variables, os.getcwd(), *streams]) + '\n')
        server.stdin.flush()
        returncode = int(server.stdout.readline())
        out, err = (Path(stream).read_text(encoding='utf-8') for stream in streams)
    return subprocess.CompletedProcess(['-c', *arguments], returncode, out, err)


@functools.lru_cache(maxsize=None)
def _beside_torch() -> subprocess.Popen[str]:
    """It ends when this process does: with its standard input."""
    serve = 'import sys, torch\nsys.path.append(sys.argv[1])\nfrom warm import serve\nsys.path.pop()\nserve()'
    command = [sys.executable, '-c', serve, os.path.dirname(__file__)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def serve() -> None:
    """Forks a process for each program that standard input asks for, and prints how it ended."""
    while True:
        asked = sys.stdin.readline()
        if not asked:
            return
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            _run(*json.loads(asked))
        _, status = os.waitpid(child, 0)
        print(-os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)


def _run(
    source: str, arguments: List[str], environment: Dict[str, str], folder: str, output: str, errors: str = ''
) -> NoReturn:
    gc.freeze()  # what was imported is no garbage, and each data set of mmengine asks for a collection
    multiprocessing.set_start_method(None, force=True)  # of its own processes: as in a new interpreter
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, stream in ((1, output), (2, errors or output)):
        os.dup2(os.open(stream, os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)
    sys.argv[:] = arguments
    sys.path[:0] = filter(None, environment.get('PYTHONPATH', '').split(os.pathsep))
    main = types.ModuleType('__main__')
    if arguments[0] != '-c':
        main.__file__ = arguments[0]
    sys.modules['__main__'] = main
    code = 0
    try:
        exec(compile(source, '<string>' if arguments[0] == '-c' else arguments[0], 'exec'), main.__dict__)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    # As the interpreter does at its end, and multiprocessing does not.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
