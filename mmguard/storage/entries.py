"""Entries of listings and headers: files with their size and version."""

from __future__ import annotations

import hashlib
from typing import Any, Mapping, NamedTuple, Optional, Tuple

Stamp = Tuple[int, int]

#: Keys of a listing that identify a file's content; the first one present is used.
_VERSIONS = (
    'ETag', 'etag', 'md5Hash', 'crc32c', 'CRC', 'Content-MD5', 'generation', 'LastModified', 'last_modified',
    'Last-Modified', 'updated',
)  # fmt: skip


class Entry(NamedTuple):
    """A file or folder in a folder; for a file with its stamp, if the listing gives it."""

    name: str
    is_folder: bool
    stamp: Optional[Stamp] = None


class Object(NamedTuple):
    """A file or folder: its size in bytes (-1 if the server does not report it), and a stamp of size and version."""

    is_folder: bool
    size: int
    stamp: Optional[Stamp]


def size_of(info: Mapping[str, Any]) -> int:
    """Return the size in bytes; -1 if unknown."""
    size = info.get('size', info.get('Content-Length'))
    return max(int(size), -1) if isinstance(size, int) or str(size).isdecimal() else -1


def stamp_of(info: Mapping[str, Any]) -> Optional[Stamp]:
    """Return size and version from a listing or a header."""
    version = next((str(info[key]) for key in _VERSIONS if info.get(key) is not None), '')
    if not version:
        return None
    return size_of(info), int.from_bytes(hashlib.blake2b(version.encode(), digest_size=6).digest(), 'big')
