"""Descriptions of the faults of files, and records of the places where each fault occurs."""

from __future__ import annotations

import errno
import os
from bisect import insort
from typing import Any, Dict, List, Optional

from mmguard.files.images import TooCostly
from mmguard.text import visible_name

MISSING = 'missing'
EMPTY = 'empty'
NOT_A_FILE = 'not a file'
NOT_AN_IMAGE = 'not an image'
TRUNCATED = 'truncated'
TOO_LARGE = 'too large'
CRASHES = 'crashes the decoder'

_BY_NUMBER = {
    errno.ENOENT: MISSING,
    errno.ENOTDIR: MISSING,
    errno.EACCES: 'no permission',
    errno.EPERM: 'no permission',
    errno.EISDIR: NOT_A_FILE,
    errno.ELOOP: 'link loop',
    errno.ENAMETOOLONG: 'name too long',
    errno.EXDEV: 'on another file system',
}
_SIGNATURES = (b'\x89PNG', b'\xff\xd8\xff', b'BM', b'II*\0', b'MM\0*', b'GIF8', b'RIFF')


class NoLabels(Exception):
    """Error for a readable file that cannot hold labels; the message describes the file in two or three words."""


def describe_fault(error: BaseException, head: bytes = b'') -> str:
    """Describe an exception of a decoder or the file system in two or three words.

    ``head``, the first bytes of the file, distinguishes a damaged image from another kind of file.
    """
    # Compare Pillow's errors by name: folders and annotation files are read without Pillow.
    kind = type(error).__name__
    if isinstance(error, (NoLabels, TooCostly)):
        return str(error)
    if kind == 'UnidentifiedImageError':
        return 'damaged' if head.startswith(_SIGNATURES) else NOT_AN_IMAGE
    if kind == 'DecompressionBombError' or isinstance(error, MemoryError):
        return TOO_LARGE
    if isinstance(error, OSError) and error.errno is not None:
        return _BY_NUMBER.get(error.errno, 'unreadable')
    return TRUNCATED if 'truncated' in str(error).lower() else 'damaged'


def make_printable(path: str, root: Optional[str] = None) -> str:
    r"""Return a file name as one line of valid text, relative to ``root`` if the file is below ``root``.

    Example:
        >>> make_printable('/data/labels/a\nb.png', '/data')
        'labels/a\\nb.png'
    """
    if root and path.startswith(root.rstrip(os.sep) + os.sep):
        path = path[len(root.rstrip(os.sep)) + 1 :]
    return visible_name(path)


class Examples:
    """Counter of added values, which keeps the ``keep`` smallest of them.

    Adding and merging are associative and commutative, so chunks can be merged in any order.
    """

    def __init__(self, keep: int = 20) -> None:
        self.keep = keep
        self.count = 0
        self.first: List[Any] = []

    def add(self, item: Any) -> None:
        self.count += 1
        self._keep(item)

    def merge(self, other: Examples) -> None:
        self.count += other.count
        for item in other.first:
            self._keep(item)

    def _keep(self, item: Any) -> None:
        if len(self.first) < self.keep or item < self.first[-1]:
            insort(self.first, item)
            del self.first[self.keep :]

    def __bool__(self) -> bool:
        return self.count > 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Examples) and (self.count, self.first) == (other.count, other.first)

    def __repr__(self) -> str:
        return f'Examples(count={self.count}, first={self.first})'


#: Maximum number of keys, e.g. of the values of a 16-bit or float file; more values cannot be classes.
MOST_KEYS = 1 << 16


class Counts(Dict[Any, int]):
    """Counts as {key: number}; after ``most`` different keys, new keys are not counted."""

    def __init__(self, most: int = MOST_KEYS) -> None:
        super().__init__()
        self.most = most

    def add(self, key: Any, number: int = 1) -> bool:
        """Add ``number`` to the count of a key; return False if ``most`` other keys are counted already."""
        if len(self) >= self.most and key not in self:
            return False
        self[key] = self.get(key, 0) + number
        return True

    def merge(self, other: Dict[Any, int]) -> None:
        for key, number in other.items():
            self.add(key, number)


#: Number of places that are named per kind of fault; further places are only counted.
MAX_PLACES = 20


class Faults:
    """Faults of files, and the places (file, entry, line) where each one occurs.

    Example:
        >>> faults = Faults()
        >>> faults.add('not JSON', 'train.json')
        >>> faults.to_dict()
        {'not JSON': ['train.json']}
    """

    def __init__(self) -> None:
        self._places: Dict[str, List[str]] = {}
        self._more: Dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, what: str, where: str) -> None:
        """Add the fault ``what`` at the place ``where``. Faults with the same text are counted together."""
        places = self._places.setdefault(what, [])
        if len(places) < MAX_PLACES:
            places.append(where)
        else:
            self.count(what, 1)

    def count(self, what: str, more: int) -> None:
        """Count ``more`` faults with the text ``what``, without naming their places."""
        if more:
            self._more[what] = self._more.get(what, 0) + more

    def to_dict(self) -> Dict[str, List[str]]:
        """Return {fault: places}. If places are omitted, the last entry gives their number: 'and 5 more'."""
        more = {what: [f'and {count:,} more'] for what, count in self._more.items()}
        return {what: [*places, *more.get(what, ())] for what, places in self._places.items()}
