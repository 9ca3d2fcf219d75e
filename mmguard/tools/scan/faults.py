"""What can be wrong with a file, in words."""

from __future__ import annotations

import errno

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
    """Two or three words for what a decoder or the file system raised.

    Args:
        error (Exception): What was raised.
        head (bytes): The first bytes of the file, to tell a damaged image from no image at all.
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
