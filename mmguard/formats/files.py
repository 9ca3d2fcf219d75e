"""Label files on a disk, and contents in memory that replace some of them while an edit is tried."""

from __future__ import annotations

import errno
import io
import os
import re
from contextlib import contextmanager
from typing import Any, BinaryIO, Dict, Iterator, Mapping, Optional, Sequence, Tuple

from mmguard.errors import CannotRun
from mmguard.files.regular import open_regular
from mmguard.text import shorten

#: Size in bytes and modification time in nanoseconds of a file.
Stamp = Tuple[int, int]

#: A scheme, or a chain of schemes. ``labels/http://host`` is a path that contains one.
_URL = re.compile(r'[A-Za-z][\w+.:-]*://')
#: mmengine's file backends that read a disk; without a name the path decides.
_BACKENDS = (None, 'local', 'disk')
#: Arguments of a data set or a loader that define where files are read; the second is the old name.
_READERS = ('backend_args', 'file_client_args')
_INSTEAD = 'copy the data to a disk or mount the storage, then scan that folder'


class Files:
    """Reader of files by path."""

    def __init__(self) -> None:
        self._held: Dict[str, bytes] = {}

    @contextmanager
    def replaced(self, contents: Mapping[str, bytes]) -> Iterator[None]:
        """Read other contents in place of files, by path; they are not listed in folders."""
        before, self._held = self._held, {os.path.abspath(path): data for path, data in contents.items()}
        try:
            yield
        finally:
            self._held = before

    def held(self, path: str) -> Optional[bytes]:
        """Return the content that replaces a file; ``None`` if it is not replaced."""
        return self._held.get(os.path.abspath(path)) if self._held else None

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            OSError: The file does not exist, may not be read, or is a folder, a pipe or a device (which could block for
                ever).
        """
        held = self.held(path)
        return open_regular(path) if held is None else io.BytesIO(held)

    def read(self, path: str, most: int) -> bytes:
        """Read a regular file of at most so many bytes.

        Raises:
            OSError: As :meth:`open`, or the file is larger.
        """
        with self.open(path) as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise OSError(errno.EFBIG, f'it is larger than {most >> 20} MiB')
        return data


FILES = Files()


def stamp_of(path: str) -> Optional[Stamp]:
    """Return the stamp of a file on disk; ``None`` if it does not exist."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_mtime_ns


def check_local(path: str) -> None:
    """Raise :class:`CannotRun` for a URL.

    Example:
        >>> check_local('data/labels/http://host/a.png')
        >>> check_local('s3://bucket/labels')
        Traceback (most recent call last):
        mmguard.errors.CannotRun: s3:// is not read: copy the data to a disk or mount the storage, then scan that folder
    """
    match = _URL.match(path)
    if match is not None:
        raise CannotRun(f'{match[0]} is not read: {_INSTEAD}')


def check_local_dataset(dataset: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = ()) -> None:
    """Raise :class:`CannotRun` if a data set of a config, or a step that loads its labels, does not read a disk."""
    prefix = dataset.get('data_prefix')
    for path in (*dataset.values(), *(prefix.values() if isinstance(prefix, Mapping) else ())):
        if isinstance(path, str):
            check_local(path)
    for part in (dataset, *steps):
        for arguments in (part.get(key) for key in _READERS):
            backend = arguments.get('backend') if isinstance(arguments, Mapping) else None
            if backend not in _BACKENDS:
                raise CannotRun(f'the file backend {shorten(backend)} of the config is not read: {_INSTEAD}')
