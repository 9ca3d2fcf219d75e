"""Files in a zip archive, with their sizes and names checked."""

from __future__ import annotations

import errno
import os
import shutil
import zipfile
from contextlib import contextmanager
from typing import IO, BinaryIO, Dict, Iterator, List, Optional

from mmguard.storage.entries import Entry, Object, stamp_of
from mmguard.storage.requests import Refused
from mmguard.storage.urls import has_dots

#: Maximum bytes of the list of members, which is held in memory, and maximum number of members.
LARGEST_DIRECTORY, MOST_MEMBERS = 64 << 20, 1_000_000
#: Beyond this size, the maximum expansion of a member; label texts expand 30 times.
_SMALL, _EXPANDS = 16 << 20, 200
#: Maximum depth of folders; deeper ones are left out.
_DEEPEST = 64


class _Bounded:
    """A file read in bounded parts: a zip itself states how long its list of members is."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.close = file.seek, file.tell, file.close

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(min(size, LARGEST_DIRECTORY + 1) if size >= 0 else LARGEST_DIRECTORY + 1)
        if len(data) > LARGEST_DIRECTORY:
            raise OSError(f'its list of members is larger than {LARGEST_DIRECTORY >> 20} MiB')
        return data

    def seekable(self) -> bool:
        return True


class Archive:
    """A zip archive; damaged ones, and ones with too many members, are refused."""

    def __init__(self, file: BinaryIO, place: str) -> None:
        try:
            self._zip = zipfile.ZipFile(_Bounded(file))  # type: ignore[arg-type]
        except Exception as error:  # a damaged file may raise anything
            raise Refused(errno.EIO, f'is not a readable zip ({error})', place) from error
        if len(self._zip.infolist()) > MOST_MEMBERS:
            raise Refused(errno.EIO, f'has more than {MOST_MEMBERS:,} members', place)
        self._folders: Dict[str, Dict[str, Entry]] = {'': {}}
        for info in self._zip.infolist():
            path = info.filename.rstrip('/')
            if has_dots(path) or path.startswith('/') or '\\' in path or path.count('/') > _DEEPEST:
                continue
            folder, _, name = path.rpartition('/')
            if info.is_dir():
                self._make(path)
            else:
                stamp = stamp_of({'size': info.file_size, 'CRC': info.CRC})
                self._make(folder)[name] = Entry(name, False, stamp)

    def _make(self, folder: str) -> Dict[str, Entry]:
        if folder not in self._folders:
            parent, _, name = folder.rpartition('/')
            self._folders[folder] = {}
            self._make(parent)[name] = Entry(name, True)
        return self._folders[folder]

    def look_at(self, path: str) -> Optional[Object]:
        """Return the entry at a path; ``None`` if it does not exist."""
        if path in self._folders:
            return Object(True, 0, None)
        folder, _, name = path.rpartition('/')
        entry = self._folders.get(folder, {}).get(name)
        return None if entry is None or entry.stamp is None else Object(False, entry.stamp[0], entry.stamp)

    def entries(self, path: str) -> List[Entry]:
        """Return the entries of a folder by name."""
        if path not in self._folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return [entry for _, entry in sorted(self._folders[path].items())]

    def read(self, path: str, start: int, end: int) -> bytes:
        """Return the bytes of a member from start to end; fewer if it is shorter."""
        with self._open_member(path) as member:
            member.seek(start)
            return member.read(end - start)

    def unpack(self, path: str, into: BinaryIO) -> None:
        """Write a member to an open file."""
        with self._open_member(path) as member:
            shutil.copyfileobj(member, into)

    @contextmanager
    def _open_member(self, path: str) -> Iterator[IO[bytes]]:
        found = self.look_at(path)
        if found is None or found.is_folder:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        info = self._zip.getinfo(path)
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others decode without a limit
            raise Refused(errno.EIO, 'is compressed with an unsupported method', path)
        if info.file_size > max(_SMALL, _EXPANDS * info.compress_size):
            raise Refused(errno.EIO, f'expands more than {_EXPANDS} times', path)
        try:
            with self._zip.open(info) as member:
                yield member
        except Exception as error:  # zipfile, zlib and the storage of a remote archive may raise anything
            raise Refused(errno.EIO, 'cannot be unpacked', f'{path} ({str(error)[:200]})') from error
