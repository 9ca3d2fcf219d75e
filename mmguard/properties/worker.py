"""Worker process for a user's program: limited in time and memory, silent, without network."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import glob
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import sysconfig
import tempfile
import threading
import time
import traceback
from typing import Any, Callable, Iterator, List, NamedTuple, Optional, Set, TypeVar

from mmguard.config.read import FINDER
from mmguard.text import describe_error

#: Seconds between two checks of the memory of the process.
_PACE = 0.2
#: Maximum memory of the process, and maximum size of a reply, in bytes.
MEMORY, LONGEST = 8 << 30, 64 << 20
#: Environment of the process: model hubs are not contacted, and libraries start no threads, which cost a small model
#: more time than they save.
_ENVIRONMENT = {
    **dict.fromkeys(('HF_HUB_OFFLINE', 'TRANSFORMERS_OFFLINE', 'HF_DATASETS_OFFLINE'), '1'),
    **dict.fromkeys(('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'OPENCV_FOR_THREADS_NUM'), '1'),
}
#: Folders of code that is not the user's: mmguard's own, which calls the program, and the standard library.
_OTHERS = tuple(
    os.path.join(folder, '')
    for folder in (
        os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        *(sysconfig.get_path(name) for name in ('stdlib', 'platstdlib')),
    )
)
#: Constants of Linux: flags of unshare(2), and options of prctl(2) (adopt orphans, send a signal if the parent ends).
_NEW_USER, _NEW_NETWORK, _SUBREAPER, _SIGNAL_AT_END = 0x10000000, 0x40000000, 36, 1

Self = TypeVar('Self', bound='Worker')


class Reply(NamedTuple):
    """Reply of a worker: the ``value`` that the function returned (JSON data), or its ``failure``."""

    value: Any = None
    failure: Optional[Failure] = None

    @property
    def works(self) -> bool:
        """True if the function raised no exception and returned an empty value."""
        return self.failure is None and not self.value


class Failure(NamedTuple):
    """Failure of a program: an exception, with its ``file:line`` if known, or a crash, a hang or too much memory.

    ``kind`` is the name of the exception's class, or ``'crash'``, ``'hang'`` or ``'memory'`` if the process ended.
    """

    kind: str
    message: str
    place: str = ''

    def __str__(self) -> str:
        return f'{self.message} ({self.place})' if self.place else self.message

    @classmethod
    def describe(cls, error: BaseException) -> Failure:
        """Return the failure for an exception, with the last line of its traceback that is in the user's code."""
        place = ''
        for frame in traceback.extract_tb(error.__traceback__):
            file = os.path.abspath(frame.filename)
            is_installed = 'site-packages' in file or 'dist-packages' in file or file.startswith(_OTHERS)
            if frame.filename and not frame.filename.startswith('<') and not is_installed:
                place = f'{frame.filename}:{frame.lineno}'
        return cls(type(error).__name__, describe_error(error), place)


class Worker:
    """Runner of functions, called one after another in a process that is replaced after a crash or a hang.

    Functions must be importable, their arguments picklable and their results JSON. Their standard streams are connected
    to the null device. The state of their modules is kept until the process ends. ``memory`` is the maximum memory of
    the process in bytes, if the system reports its use. If ``forks`` is true on Linux, the process starts with the
    modules that are imported here, which saves seconds; CUDA must not be in use.
    """

    def __init__(self, memory: int = MEMORY, forks: bool = False) -> None:
        self._memory = memory
        # On other systems, system libraries do not survive a fork.
        self._context: Any = multiprocessing.get_context('fork' if forks and sys.platform == 'linux' else 'spawn')
        self._process: Any = None
        self._connection: Any = None
        self._home = ''

    def ask(self, function: Callable[..., Any], *args: Any, seconds: float) -> Reply:
        """Call a function in the process and return its reply; never raise an exception of the function."""
        ends = time.monotonic() + seconds
        try:
            request = pickle.dumps((function, args))
        except Exception as error:  # functions and objects defined in the config
            return Reply(failure=Failure(type(error).__name__, f'cannot be sent to a process ({error})'))
        try:
            if self._process is None:
                self._start()
        except OSError as error:  # no processes, files or memory are left
            return Reply(failure=Failure(type(error).__name__, f'cannot be started in a process ({error})'))
        replies: List[Reply] = []
        # The process may stop within a message: only a thread can wait for both the rest of it and the deadline.
        exchange = threading.Thread(target=_send_and_receive, args=(self._connection, request, replies), daemon=True)
        exchange.start()
        while True:
            exchange.join(max(0.0, min(_PACE, ends - time.monotonic())))
            if not exchange.is_alive():
                break
            if time.monotonic() >= ends:
                return self._end(Failure('hang', f'did not end within {seconds:.0f} s'))
            if self._measure_memory() > self._memory:
                return self._end(Failure('memory', f'uses more than {self._memory / 2**30:.0f} GiB'))
        if not replies:
            self._process.join(max(0.1, min(5.0, ends - time.monotonic())))
            code = self._process.exitcode
            how = 'without a reply' if code is None else f'signal {-code}' if code < 0 else f'exit code {code}'
            return self._end(Failure('crash', f'ended its process ({how})'))
        return replies[0]

    def close(self) -> None:
        """End the process and all processes that it started."""
        if self._process is not None:
            atexit.unregister(self.close)
            family = _find_family(self._process.pid)
            with contextlib.suppress(OSError, AttributeError):
                os.killpg(self._process.pid, signal.SIGKILL)
            for member in family[1:]:
                with contextlib.suppress(OSError):
                    os.kill(member, signal.SIGKILL)
            self._process.kill()
            self._process.join()
            # A thread may still read from the connection, which is closed with its last reference.
            self._process = self._connection = None
            shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        # A forked process must not hold the parent's end of the connection, so that it ends with the parent.
        ours = self._connection if self._context.get_start_method() == 'fork' else None
        # Not a daemon: those may not have children, which metrics of mmdet and loaders start.
        folder = os.getcwd()
        self._home = tempfile.mkdtemp(prefix='mmguard-')
        process = self._context.Process(target=_serve, args=(theirs, ours, folder, FINDER.folders, self._home))
        os.chdir(os.path.abspath(os.sep))  # a new interpreter imports from where it starts, before it has our sys.path
        try:
            process.start()
        finally:
            os.chdir(folder)
        atexit.register(self.close)
        self._process = process
        theirs.close()

    def _end(self, failure: Failure) -> Reply:
        self.close()
        return Reply(failure=failure)

    def _measure_memory(self) -> int:
        pages = 0
        for member in _find_family(self._process.pid):
            # The process may have ended, or the system is not Linux.
            with contextlib.suppress(OSError, IndexError), open(f'/proc/{member}/statm', encoding='ascii') as file:
                pages += int(file.read().split()[1])
        return pages * os.sysconf('SC_PAGE_SIZE') if pages else 0


def _send_and_receive(connection: Any, request: bytes, replies: List[Reply]) -> None:
    """Send a request and append its reply to ``replies``, or nothing if the process ends or sends something else."""
    with contextlib.suppress(Exception):
        connection.send_bytes(request)
        answer = json.loads(connection.recv_bytes(LONGEST))
        failed = 'failure' in answer
        replies.append(Reply(failure=Failure(*answer['failure'])) if failed else Reply(answer['value']))


class OutOfTime(BaseException):
    """Error of a function that exceeds its time limit; not an ``Exception``, so that programs do not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the ``with`` block of the main thread by :class:`OutOfTime` after ``seconds``; not on Windows."""

    def interrupt(*_: Any) -> None:
        raise OutOfTime

    if not hasattr(signal, 'setitimer'):
        yield
        return
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _find_family(pid: int) -> List[int]:
    """Return a process and, if the system reports them, all its descendants."""
    found = [pid]
    for known in found:
        for path in glob.glob(f'/proc/{known}/task/*/children'):
            with contextlib.suppress(OSError, ValueError), open(path, encoding='ascii') as file:
                found += map(int, file.read().split())
    return found


def _serve(connection: Any, ours: Any, folder: str, project: List[str], home: str) -> None:
    FINDER.folders = project
    if ours is not None:
        ours.close()
    parent = os.getppid()
    _isolate(home)
    if sys.platform == 'linux':
        _end_descendants_at_exit(connection, parent)
    os.chdir(folder)
    while True:
        try:
            request = connection.recv_bytes()
        except (EOFError, OSError):
            return
        try:
            function, args = pickle.loads(request)
            data = json.dumps({'value': function(*args)})
        except BaseException as error:  # also SystemExit: it is raised by the user's program
            data = json.dumps({'failure': Failure.describe(error)})
        connection.send_bytes(data.encode())


def _end_descendants_at_exit(connection: Any, parent: int) -> None:
    """Start a fork and return only in the fork; this process kills its descendants when the fork or the parent ends."""
    # Awaited, not handled: the parent's threads end one by one, and each end would interrupt the handler of the last.
    signals = {signal.SIGTERM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    fork = os.fork()
    if fork == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        return
    connection.close()
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_SIGNAL_AT_END, signal.SIGTERM, 0, 0, 0)
    ended = status = 0
    while not ended and os.getppid() == parent:  # it may have ended before it was asked to report
        if signal.sigwait(signals) == signal.SIGTERM:
            break
        ended, status = os.waitpid(fork, os.WNOHANG)
    for member in _find_family(os.getpid())[1:]:
        with contextlib.suppress(OSError):
            os.kill(member, signal.SIGKILL)
    if not ended:
        os._exit(1)
    if os.WIFSIGNALED(status):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def _isolate(home: str) -> None:
    if hasattr(os, 'setsid'):  # Ctrl-C is for the parent, which ends the whole group
        os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent's handlers clean up after the parent
        signal.signal(number, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(stream, 'rww'[stream], encoding='utf-8') for stream in range(3))
    caches = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')  # fonts, not the program's files
    os.environ.update(_ENVIRONMENT, HOME=home, TMPDIR=home, XDG_CACHE_HOME=caches)
    tempfile.tempdir = None
    if 'torch' in sys.modules:  # it has read the environment; and a pool of threads does not survive a fork
        sys.modules['torch'].set_num_threads(1)
    sys.addaudithook(_refuse_network)
    sys.addaudithook(_refuse_file_changes)
    sys.dont_write_bytecode = True
    with contextlib.suppress(AttributeError, OSError):
        _leave_network(ctypes.CDLL(None))


def _leave_network(libc: Any) -> None:
    """Keep programs started by this process off the network, and adopt their orphaned children, if Linux allows it."""
    libc.prctl(_SUBREAPER, 1, 0, 0, 0)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NETWORK) != 0 and libc.unshare(_NEW_USER | _NEW_NETWORK) == 0:
        # New files must have an owner.
        for name, text in (('setgroups', 'deny'), ('uid_map', f'{user} {user} 1'), ('gid_map', f'{group} {group} 1')):
            with open(f'/proc/self/{name}', 'w', encoding='ascii') as file:
                file.write(text)


def _refuse_network(event: str, args: Any) -> None:
    """Refuse name look-ups, connections and messages to other hosts; allow Unix sockets, whose address is a string."""
    is_sent = event in ('socket.connect', 'socket.sendto', 'socket.sendmsg') and isinstance(args[1], tuple)
    if is_sent or event.startswith(('socket.gethostby', 'socket.getaddrinfo', 'socket.getnameinfo')):
        raise ConnectionRefusedError('mmguard runs the program without network')


#: Files and folders created by the program.
_made: Set[str] = set()


def _refuse_file_changes(event: str, args: Any) -> None:
    """Refuse changes of files that the program did not create, because some metrics empty their folder."""
    if event == 'open':
        # Opening a folder for writing (O_TMPFILE) creates a file without a name, which changes no other file.
        if isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR) and not os.path.isdir(args[0]):
            _check_change(args[0])
    elif event == 'os.mkdir':
        if not os.path.lexists(args[0]):
            _check_change(args[0])
    elif event == 'os.rename':
        _check_change(args[0])
        _check_change(args[1])
    # Names in an open folder belong to a tree that was checked as a whole.
    elif event in ('os.remove', 'os.rmdir', 'shutil.rmtree') and args[1:] in ((), (-1,), (None,)):
        _check_change(args[0])


def _check_change(path: Any) -> None:
    """Record a created path; refuse to change a path that existed before the program."""
    if isinstance(path, int):
        return
    folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
    whole = os.path.join(os.path.realpath(folder), name)
    own = any(whole == made or whole.startswith(made + os.sep) for made in _made)
    if not os.path.lexists(path):
        _made.add(whole)
    elif not own and (os.path.isfile(path) or os.path.isdir(path)):  # not a device
        raise PermissionError(f'mmguard does not let the program change {whole}, which existed before')
