"""Files that are written whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Callable, Iterator, Optional, Tuple, Union

from mmguard.errors import CannotRun

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: How the names of temporary folders begin.
_FOLDER = 'mmguard-files-'
_FLAGS = os.O_WRONLY | os.O_CREAT | getattr(os, 'O_NOFOLLOW', 0) | getattr(os, 'O_BINARY', 0)


def write_whole(path: Path, content: bytes, check: Optional[Callable[[Path], None]] = None) -> None:
    """Writes a file beside its place, then gives it its name; on an error the one that is there stays as it was.

    What a process that was killed left beside it is taken over by the next one that writes the same file.

    Args:
        path (Path): Where the file is wanted; its folder is made.
        content (bytes): What it is to hold.
        check (callable, optional): Called with the file before it has its name: what it raises ends all.

    Raises:
        OSError: It cannot be written.
    """
    if not path.name:  # '.' or '/', beside which there is no place
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = _open_draft(path)
    try:
        with os.fdopen(descriptor, 'wb') as file:
            file.truncate()
            file.write(content)
            file.flush()
            if check is not None:
                check(draft)
            if fcntl is None:
                file.close()  # Windows renames no open file; elsewhere it is locked until it has its name
            os.replace(draft, path)
    except BaseException:
        with suppress(FileNotFoundError):  # interrupted after it got its name
            os.unlink(draft)
        raise


@contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder for as long as it is needed. Those that are left of processes that were killed go, too."""
    for left in Path(tempfile.gettempdir()).glob(f'{_FOLDER}*'):
        lock = _lock(left, wait=False)
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    while True:
        folder = tempfile.mkdtemp(prefix=_FOLDER)
        lock = _lock(folder, wait=True)
        if os.path.isdir(folder):  # else another process took it for one that was left
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def is_draft(name: str) -> bool:
    """Whether a file has the name of one that is being written, or was left by a process that was killed."""
    return name.startswith('.') and name.endswith('.part')


def write_or_print(target: str, text: str) -> None:
    """Writes a text where ``--json`` says: a file, whole, or standard output for ``'-'``.

    Args:
        target (str): The file, or ``'-'``.
        text (str): It gets a newline at its end.

    Raises:
        CannotRun: The file cannot be written.
    """
    if target == '-':
        sys.stdout.write(text + '\n')
        sys.stdout.flush()
    else:
        try:
            write_whole(Path(target), (text + '\n').encode())
        except OSError as error:
            raise CannotRun(f'{target} cannot be written: {error.strerror or error}') from error


def _open_draft(path: Path) -> Tuple[int, Path]:
    """A file to write to: always the same one, but another while a process writes that."""
    stem = f'.{path.name}'[:40]
    draft = path.with_name(f'{stem}.part')
    with suppress(OSError):  # of another user, or a link
        descriptor = os.open(draft, _FLAGS, 0o666)
        if _is_alone(descriptor, draft):
            return descriptor, draft
        os.close(descriptor)
    draft = path.with_name(f'{stem}.{uuid.uuid4().hex[:8]}.part')
    return os.open(draft, _FLAGS | os.O_EXCL, 0o666), draft


def _is_alone(descriptor: int, draft: Path) -> bool:
    """Whether no other process writes this file, or has given it its name since it was opened. Locks it."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(draft))
    except FileNotFoundError:
        return False


def _lock(folder: Union[str, Path], wait: bool) -> Optional[int]:
    """A descriptor that locks a folder; ``None`` where it is locked, gone, or on a file system without locks."""
    if fcntl is None:
        return None
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), os.stat(folder)):
                return descriptor
        os.close(descriptor)
    return None
