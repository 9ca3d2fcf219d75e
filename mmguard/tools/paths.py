"""Paths of two machines, compared from their ends."""

from __future__ import annotations

import posixpath
from typing import List


def parts_of(path: str) -> List[str]:
    r"""Folders and file name, be it a path of POSIX or of Windows.

    Example:
        >>> parts_of('C:\\data\\.\\a.png')
        ['C:', 'data', 'a.png']
    """
    return [part for part in posixpath.normpath(path.replace('\\', '/')).split('/') if part not in ('', '.')]


def common_tail(one: str, other: str) -> int:
    """How many parts two paths share, counted from their ends.

    Example:
        >>> common_tail('/home/me/data/train/a.png', '/mnt/data/train/a.png')
        3
    """
    count = 0
    for mine, yours in zip(reversed(parts_of(one)), reversed(parts_of(other))):
        if mine != yours:
            break
        count += 1
    return count
