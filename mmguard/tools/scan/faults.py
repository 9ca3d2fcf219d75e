"""What can be wrong with a file, in words, and the places where it is."""

from __future__ import annotations

import errno
import os
from bisect import insort
from typing import Any, Dict, List, Optional

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
}
_SIGNATURES = (b'\x89PNG', b'\xff\xd8\xff', b'BM', b'II*\0', b'MM\0*', b'GIF8', b'RIFF')


class NoLabels(Exception):
    """A file that can be read and never holds labels; says in two or three words what it is."""


def fault_of(error: BaseException, head: bytes = b'') -> str:
    """Return two or three words for what a decoder or the file system raised.

    ``head``, the first bytes of the file, tells a damaged image from no image at all.
    """
    # Pillow's errors by their names: folders and annotation files are read without it, too.
    kind = type(error).__name__
    if isinstance(error, NoLabels):
        return str(error)
    if kind == 'UnidentifiedImageError':
        return 'damaged' if head.startswith(_SIGNATURES) else NOT_AN_IMAGE
    if kind == 'DecompressionBombError' or isinstance(error, MemoryError):
        return TOO_LARGE
    if isinstance(error, OSError) and error.errno is not None:
        return _BY_NUMBER.get(error.errno, 'unreadable')
    return TRUNCATED if 'truncated' in str(error).lower() else 'damaged'


def printable(path: str, root: Optional[str] = None) -> str:
    r"""A file name in one line of valid text, relative to ``root`` where it lies below it.

    Example:
        >>> printable('/data/labels/a\nb.png', '/data')
        'labels/a\\nb.png'
    """
    if root and path.startswith(root.rstrip(os.sep) + os.sep):
        path = path[len(root.rstrip(os.sep)) + 1 :]
    return visible_name(path)


class Examples:
    """Counts what is added and keeps the first ``keep`` in sorted order.

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


__all__ = ['NAMED', 'Faults']

#: So many places are named of each kind of fault; the others are counted.
NAMED = 20


class Faults:
    """Collects faults of files.

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
        """Write down what is wrong, in the same words wherever it is the same, and the place."""
        places = self._places.setdefault(what, [])
        if len(places) < NAMED:
            places.append(where)
        else:
            self.count(what, 1)

    def count(self, what: str, more: int) -> None:
        """Counts faults whose places are not named."""
        if more:
            self._more[what] = self._more.get(what, 0) + more

    def to_dict(self) -> Dict[str, List[str]]:
        """What is wrong -> places, the last one telling how many are not named."""
        return {
            what: [*places, f'and {self._more[what]:,} more'] if what in self._more else list(places)
            for what, places in self._places.items()
        }
