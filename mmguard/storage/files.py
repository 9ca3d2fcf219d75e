"""Files by path, on a disk of this machine or at a URL."""

from __future__ import annotations

import errno
import io
import os
import stat
import tempfile
from collections import OrderedDict
from contextlib import contextmanager
from functools import partial
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

from mmguard.errors import CannotRun
from mmguard.files.inside import is_file_name
from mmguard.files.regular import open_regular
from mmguard.storage import systems
from mmguard.storage.entries import Entry, Object, Stamp
from mmguard.storage.requests import Refused, ahead
from mmguard.storage.systems import WEB
from mmguard.storage.urls import add_named, is_url, list_named, mask_secrets, split_archive
from mmguard.text import shorten

#: Larger files are fetched in parts of this size, to a temporary file.
_PART = 16 << 20
#: Maximum bytes read into memory, for many files at a time, and for one in a temporary file.
LARGEST, LARGEST_FILE = 128 << 20, 8 << 30
#: mmengine's file backends that read the same as :class:`Files`; without a name the path decides.
_BACKENDS = (None, 'local', 'disk', 'http')
#: Number of cached folder listings: a target is inspected several times before it is read.
_KEPT = 8

_listings: OrderedDict[str, Dict[str, Entry]] = OrderedDict()


def check_backend(arguments: Optional[Mapping[str, Any]]) -> None:
    """Refuse a config whose ``backend_args`` (formerly ``file_client_args``) read files other than by path or URL."""
    backend = (arguments or {}).get('backend')
    if backend not in _BACKENDS:
        raise CannotRun(
            f'the config reads its files through the file backend {shorten(backend)}, which is not read here: copy the '
            'labels to a disk, or mount the storage, and scan a config that names that place without backend_args'
        )


class Content(NamedTuple):
    """The content of a file, or its beginning, with size and version; or the reason why it cannot be read."""

    data: bytes = b''
    stamp: Optional[Stamp] = None
    error: Optional[OSError] = None


class Files:
    """Reads files from the disk, or through fsspec if the path is a URL.

    It can be sent to other processes and machines, with all they need to read the same URLs.
    """

    def __init__(self) -> None:
        self._held: Dict[str, bytes] = {}

    @contextmanager
    def replaced(self, contents: Mapping[str, bytes]) -> Iterator[None]:
        """Read other contents in place of files, by path; in listings of folders they replace only files."""
        before, self._held = self._held, {os.path.abspath(path): data for path, data in contents.items()}
        try:
            yield
        finally:
            self._held = before

    def held(self, path: str) -> Optional[bytes]:
        """Return the content that replaces a file; ``None`` if it is not replaced."""
        return self._held.get(os.path.abspath(path)) if self._held else None

    def __getstate__(self) -> Dict[str, Any]:
        return {**vars(self), '_named': list_named()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        add_named(*state.pop('_named'))
        vars(self).update(state)

    def is_far(self, path: str) -> bool:
        """Return True if :meth:`content` reads a file: it takes a request, alongside which others may run, or none."""
        return is_url(path) or self.held(path) is not None

    def look_at(self, path: str) -> Optional[Object]:
        """Return the entry at a path; ``None`` if it does not exist."""
        held = self.held(path)
        if held is not None:
            return Object(False, len(held), (len(held), 0))
        try:
            if self.is_far(path):
                return systems.look_at(path)
            status = os.stat(path)
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise
        return Object(stat.S_ISDIR(status.st_mode), status.st_size, (status.st_size, status.st_mtime_ns))

    def exists(self, path: str) -> bool:
        return os.path.exists(path) if not self.is_far(path) else self.look_at(path) is not None

    def is_folder(self, path: str) -> bool:
        if not self.is_far(path):
            return os.path.isdir(path)
        found = self.look_at(path)
        return found is not None and found.is_folder

    def stamp_of(self, path: str) -> Optional[Stamp]:
        """Return size and version (on disk, modification time); ``None`` if the file does not exist."""
        try:
            found = self.look_at(path)
        except (OSError, ValueError):
            return None
        return None if found is None else found.stamp

    def entries(self, folder: str) -> List[Entry]:
        """Return the entries of a folder by name."""
        if not self.is_far(folder):
            with os.scandir(folder) as entries:
                return sorted(Entry(entry.name, _is_folder(entry)) for entry in entries)
        if folder not in _listings:
            listed = systems.list_folder(folder)
            _listings[folder] = {entry.name: entry for entry in listed if is_file_name(entry.name)}
        _listings.move_to_end(folder)
        while len(_listings) > _KEPT:
            _listings.popitem(last=False)
        return list(_listings[folder].values())

    def names_in(self, folder: str) -> Set[str]:
        """Return the names in a folder; raise as :meth:`entries` does."""
        if self.is_far(folder):
            return {entry.name for entry in self.entries(folder)}
        with os.scandir(folder) as entries:
            return {entry.name for entry in entries}

    def can_list(self, folder: str) -> bool:
        """Return True if a folder can be listed; an HTTP server may not allow it."""
        try:
            return not folder.startswith(WEB) or bool(self.entries(folder))
        except OSError:
            return False

    def content(self, path: str, stamp: Optional[Stamp] = None, most: Optional[int] = None) -> Content:
        """Read a remote file, or its first ``most`` bytes, without raising; a body of the wrong length is a failure."""
        held = self.held(path)
        if held is not None:
            return Content(held[:most], (len(held), 0))
        try:
            stamp = stamp or self._stamp(path)
            return Content(self._whole(path, stamp, most), stamp)
        except OSError as error:
            return Content(error=error)

    def end_of(self, path: str, size: int, length: int) -> bytes:
        """Return the last bytes of a remote file of known size."""
        return self._part(path, size - length, size)

    def readers(self, paths: Sequence[str], read: Callable[[str], bytes]) -> Iterator[Callable[[], bytes]]:
        """Yield a reader for each of many files, all remote or all local; the next remote ones are prefetched."""
        if self._held:
            return (partial(_data, self.content(path)) if self.is_far(path) else partial(read, path) for path in paths)
        if paths and self.is_far(paths[0]):
            return (partial(_data, content) for content in ahead(partial(self.content, path) for path in paths))
        return (partial(read, path) for path in paths)

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            OSError: The file does not exist, may not be read, or is a folder, a pipe or a device (which could block for
                ever).
        """
        held = self.held(path)
        if held is not None:
            return io.BytesIO(held)
        if not self.is_far(path):
            return open_regular(path)
        found = self.look_at(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), mask_secrets(path))
        if found.is_folder:
            raise OSError(0, 'it is a folder')
        if found.size > LARGEST_FILE:
            raise _build_too_large_error(path, LARGEST_FILE)
        if found.size <= _PART:
            return io.BytesIO(_data(self.content(path, found.stamp)))
        file = tempfile.TemporaryFile()  # noqa: SIM115  whoever asked closes it
        if split_archive(path)[0]:
            systems.unpack(path, file)  # type: ignore[arg-type]
        else:
            ends = range(_PART, found.size + _PART, _PART)
            for part in ahead(partial(self._part, path, end - _PART, min(end, found.size)) for end in ends):
                file.write(part)
        file.seek(0)
        return file  # type: ignore[return-value]

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

    def _stamp(self, path: str) -> Optional[Stamp]:
        folder, _, name = path.rpartition('/')
        listed = _listings.get(folder, {}).get(name)
        if listed is not None and listed.stamp is not None:
            return listed.stamp
        found = self.look_at(path)
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return found.stamp

    def _whole(self, path: str, stamp: Optional[Stamp], most: Optional[int]) -> bytes:
        size = -1 if stamp is None else stamp[0]
        if most is not None and not 0 <= size <= most:
            return self._part(path, 0, most) if size >= 0 else systems.read_bytes(path, 0, most)
        if size > LARGEST:
            raise _build_too_large_error(path, LARGEST)
        # Read one byte more than expected, to detect a longer body.
        data = systems.read_bytes(path, 0, (LARGEST if size < 0 else size) + 1) if size else b''
        if len(data) > LARGEST:
            raise _build_too_large_error(path, LARGEST)
        if 0 <= size != len(data):
            raise OSError(
                errno.EIO, 'the number of received bytes differs from its size', f'{mask_secrets(path)} ({size:,})'
            )
        return data

    def _part(self, path: str, start: int, end: int) -> bytes:
        data = systems.read_bytes(path, start, end)
        if len(data) < end - start:
            raise OSError(errno.EIO, 'fewer bytes were received than its size', mask_secrets(path))
        return data


def _build_too_large_error(path: str, most: int) -> Refused:
    return Refused(errno.EFBIG, f'is larger than {most >> 20:,} MiB, and at a URL', mask_secrets(path))


FILES = Files()


def forget_listings() -> None:
    """Forget cached listings, which may have changed."""
    _listings.clear()
    systems.forget_archives()


def _data(content: Content) -> bytes:
    if content.error is not None:
        raise content.error
    return content.data


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False
