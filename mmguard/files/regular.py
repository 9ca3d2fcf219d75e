"""Regular files, opened without waiting: a FIFO, a socket or a device is refused before it is opened."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Union

#: O_NONBLOCK: a FIFO that replaces a file between check and opening must not block.
_FLAGS = os.O_RDONLY | getattr(os, 'O_NONBLOCK', 0) | getattr(os, 'O_BINARY', 0) | getattr(os, 'O_CLOEXEC', 0)


def check_regular(path: Union[str, os.PathLike[str]]) -> None:
    """Raise like :func:`open_regular`, for a library that opens a file by name."""
    _check(os.stat(path).st_mode)


def open_regular(path: Union[str, os.PathLike[str]]) -> BinaryIO:
    """Open a regular file for reading.

    Raises:
        OSError: It does not exist, may not be read, or is a folder, a FIFO, a socket or a device.
        ValueError: The path has a null byte.
    """
    check_regular(path)
    file = open(path, 'rb', opener=lambda name, _: os.open(name, _FLAGS))  # noqa: SIM115  the caller closes it
    try:
        _check(os.fstat(file.fileno()).st_mode)
    except BaseException:
        file.close()
        raise
    return file


def read_regular(path: Union[str, os.PathLike[str]], most: int) -> bytes:
    """Read a regular file of at most so many bytes.

    Raises:
        OSError: As :func:`open_regular`, or the file is larger.
        ValueError: The path has a null byte.
    """
    with open_regular(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f'it is larger than {most >> 20} MiB')
    return data


def _check(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(0, 'it is a folder' if stat.S_ISDIR(mode) else 'it is not a regular file')
