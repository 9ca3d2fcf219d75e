"""Functions that read regular files and write them atomically (no FIFOs or devices), and folders of a project."""

from __future__ import annotations

import errno
import os
import platform
import shutil
import stat
import tempfile
import uuid
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Iterator, List, Optional, Sequence, Tuple, Union

#: O_NONBLOCK, because opening must not block if a FIFO replaces the file after the check.
_READ = os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0) | getattr(os, 'O_BINARY', 0) | getattr(os, 'O_CLOEXEC', 0)


def check_regular(path: Union[str, os.PathLike[str]]) -> None:
    """Raise the errors of :func:`open_regular` for a file that a library will open by name."""
    _check(os.stat(path).st_mode)


def open_regular(path: Union[str, os.PathLike[str]]) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: The file does not exist, cannot be read, or is a folder, a FIFO, a socket or a device.
        ValueError: The path has a null byte.
    """
    check_regular(path)
    file = open(path, 'rb', opener=lambda name, _: os.open(name, _READ))  # noqa: SIM115  the caller closes it
    try:
        _check(os.fstat(file.fileno()).st_mode)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Union[str, os.PathLike[str]], limit: int = 1 << 24) -> bytes:
    """Read a regular file of at most ``limit`` bytes.

    Raises:
        OSError: As :func:`open_regular`, or the file is larger than ``limit``.
        ValueError: The path has a null byte.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        # read() allocates all bytes that it may return.
        data = file.read(size + 1) if size <= limit else b''
        if size < len(data) <= limit:  # the file grows, or reports no size
            data += file.read(limit + 1 - len(data))
    if max(size, len(data)) > limit:
        raise OSError(errno.EFBIG, f'it is larger than {limit >> 20} MiB')
    return data


def _check(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(0, 'it is a folder' if stat.S_ISDIR(mode) else 'it is not a regular file')


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

#: Prefix of the names of temporary folders.
_PREFIX = 'mmguard-files-'
#: Flags to open a folder; opening a FIFO or a link fails.
_FOLDER = os.O_RDONLY | getattr(os, 'O_DIRECTORY', 0) | getattr(os, 'O_NOFOLLOW', 0)
#: Flags to open a file for writing: opening a pipe does not block, and opening a link fails.
_WRITE = os.O_RDWR | os.O_CREAT | sum(getattr(os, name, 0) for name in ('O_NOFOLLOW', 'O_NONBLOCK', 'O_BINARY'))
NOT_REGULAR_FAULT = 'is not a regular file'
#: Name of the lock file, which :func:`is_draft` accepts: a lock left by a killed process is not read as a data file.
LOCK = '.mmguard-lock.part'
_OWNER_SIZE = 200


def write_whole(path: Path, content: bytes, mode: Optional[int] = None) -> None:
    """Write a file as a draft (temporary file), and then rename the draft. An error leaves the old file unchanged.

    A draft left by a killed process is reused by the next process that writes the same file. Only a regular file is
    replaced, never a device, a pipe or a link.

    Args:
        path (Path): The file; its folder is created.
        content (bytes): Its content.
        mode (int, optional): Permissions. Default: the permissions of the file that is replaced.

    Raises:
        OSError: The file cannot be written, or the path exists and is not a regular file.
    """
    if not path.name:  # '.' or '/': a draft cannot be placed next to it
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if os.path.lexists(path):
        known = os.lstat(path).st_mode
        if not stat.S_ISREG(known):
            raise OSError(errno.EEXIST, NOT_REGULAR_FAULT, str(path))
        mode = known if mode is None else mode
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, draft = _open_draft(path)
    try:
        with os.fdopen(descriptor, 'wb') as file:
            if mode is not None:
                with suppress(OSError, AttributeError):  # a file system without permissions; Windows
                    os.fchmod(descriptor, mode & 0o777)
            file.truncate()
            file.write(content)
            file.flush()
            if fcntl is None:
                file.close()  # Windows cannot rename an open file; elsewhere it stays locked until it has its name
            os.replace(draft, path)
    except BaseException as error:
        with suppress(FileNotFoundError):  # interrupted after it got its name
            os.unlink(draft)
        if isinstance(error, OSError) and error.errno and error.filename is None:  # a full disk names no file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


def open_append(path: str) -> int:
    """Open a regular file for appending, and create it if it is missing. The caller closes the descriptor.

    Raises:
        OSError: The file cannot be written, or the path is a folder, a link, a FIFO, a socket or a device.
    """
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    descriptor = os.open(path, _WRITE | os.O_APPEND, 0o644)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EEXIST, NOT_REGULAR_FAULT, path)


@contextmanager
def temporary_folder() -> Iterator[str]:
    """Yield a temporary folder, and delete it at the end. Leftovers of killed processes are deleted first."""
    for left in Path(tempfile.gettempdir()).glob(f'{_PREFIX}*'):
        lock = _lock(left, wait=False)
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(lock)
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        lock = _lock(folder, wait=True)
        if os.path.isdir(folder):  # otherwise another process removed it as a leftover
            break
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def is_draft(name: str) -> bool:
    """Return True if a file has the name of a draft of :func:`write_whole`."""
    return name.startswith('.') and name.endswith('.part')


@contextmanager
def pin_folder(folder: Path, flags: int = _FOLDER) -> Iterator[Path]:
    """Yield a path that, on Linux, still leads to the folder if a link replaces the folder later.

    With the default ``flags``, a folder that is a link raises an OSError.
    """
    if not os.path.isdir('/proc/self/fd'):
        yield folder
        return
    opened = os.open(folder, flags)
    try:
        yield Path(f'/proc/self/fd/{opened}')
    finally:
        os.close(opened)


@contextmanager
def hold_folder(folder: Path) -> Iterator[Path]:
    """Lock a folder against writes by other mmguard processes, and yield the path from :func:`pin_folder`.

    The lock is released at the end of the context, or when this process ends.

    Raises:
        BlockingIOError: Another process holds the lock.
        OSError: The folder is not writable.
    """
    with pin_folder(folder) as pinned:
        path = pinned / LOCK
        descriptor = _take(path)
        try:
            yield pinned
        finally:
            with suppress(OSError):
                os.unlink(path)
            os.close(descriptor)


def _take(path: Path) -> int:
    for _ in range(3):  # the holder may release it in between
        is_new = not os.path.lexists(path)
        descriptor = os.open(path, _WRITE, 0o666)
        is_locked = _try_lock(descriptor)
        with suppress(OSError):
            is_free = is_new or _is_of_dead(os.read(descriptor, _OWNER_SIZE)) if is_locked is None else is_locked
            if is_free and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                if is_locked is None:
                    os.ftruncate(descriptor, 0)
                    os.lseek(descriptor, 0, os.SEEK_SET)
                    os.write(descriptor, f'{os.getpid()} {platform.node()}'[:_OWNER_SIZE].encode())
                return descriptor
        os.close(descriptor)
    raise BlockingIOError(errno.EWOULDBLOCK, 'another process writes there', str(path))


def _is_of_dead(owner: bytes) -> bool:
    """Return True if ``owner``, the content of a lock file, names a process of this machine that has ended."""
    number, _, node = owner.decode(errors='replace').partition(' ')
    if fcntl is None or node != platform.node() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _try_lock(descriptor: int) -> Optional[bool]:
    """Lock a file. Return True on success, False if another process holds the lock, ``None`` without lock support."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _open_draft(path: Path) -> Tuple[int, Path]:
    """Open a draft of a file, and return (descriptor, path). If the usual draft is in use, a random name is chosen."""
    stem = f'.{path.name}'[:40]
    draft = path.with_name(f'{stem}.part')
    with suppress(OSError):  # belongs to another user, or is a link
        descriptor = os.open(draft, _WRITE, 0o666)
        if _is_alone(descriptor, draft):
            return descriptor, draft
        os.close(descriptor)
    draft = path.with_name(f'{stem}.{uuid.uuid4().hex[:8]}.part')
    return os.open(draft, _WRITE | os.O_EXCL, 0o666), draft


def _is_alone(descriptor: int, draft: Path) -> bool:
    """Lock a draft, and return True if no other process is writing or has renamed this draft."""
    opened = os.fstat(descriptor)
    if not stat.S_ISREG(opened.st_mode) or opened.st_nlink != 1:  # otherwise the target of a link would be truncated
        return False
    is_locked = _try_lock(descriptor)
    if not is_locked:
        return is_locked is None
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(draft))
    except FileNotFoundError:
        return False


def _lock(folder: Union[str, Path], wait: bool) -> Optional[int]:
    """Lock a folder and return its descriptor, or ``None`` if the folder is locked, is missing or cannot be locked."""
    if fcntl is None:
        return None
    with suppress(OSError):
        descriptor = os.open(folder, _FOLDER)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(descriptor)
            if status.st_uid == os.getuid() and os.path.samestat(status, os.stat(folder)):
                return descriptor
        os.close(descriptor)
    return None


def list_project(folder: str, marks: Sequence[str] = ('.git', 'pyproject.toml', 'setup.py')) -> List[str]:
    """Return a folder and its parents up to the project root, which contains one of ``marks``; else only [folder]."""
    folders = [folder, *map(str, Path(folder).parents)]
    roots = (n for mark in marks for n, one in enumerate(folders) if os.path.exists(os.path.join(one, mark)))
    return folders[: next(roots, 0) + 1]
