"""The only opener of images: formats are plain rasters, and the work that a header asks for is bounded."""

from __future__ import annotations

import io
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, BinaryIO, Iterator, Tuple

#: Formats that are read: only plain rasters, because pillow would start Ghostscript for an EPS that is named .png.
_FORMATS = ('PNG', 'JPEG', 'BMP', 'TIFF', 'GIF', 'WEBP', 'PPM', 'TGA', 'JPEG2000')
#: Maximum number of bytes of the decoded pixels.
MOST_DECODED = 1 << 28
#: Bytes per pixel that are counted for a mode of pillow, 4 for others; wide numbers are copied to be counted.
_BYTES = {'1': 1, 'L': 1, 'P': 1, 'I': 8, 'F': 8}
#: Number of pixels that any file may have, and above it the number per byte. Deflate stores up to 8,256 in a byte.
FREE, MOST_PER_BYTE = 1 << 24, 1 << 14
#: Bytes that pillow may read of a file, in addition to several times its size, and those that each reading counts.
_READ, _TIMES, _CALL = 1 << 26, 8, 1 << 12
#: Tags of TIFF: sizes in bytes of its strips or tiles.
_SIZES = (279, 325)


class TooCostly(MemoryError):
    """A file that asks for too much work; the message says in a few words what there is too much of."""


@lru_cache(maxsize=None)
def list_formats() -> Tuple[str, ...]:
    """Return the formats that this build of pillow can read."""
    from PIL import Image  # not at the top: annotation files are scanned without pillow

    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


@contextmanager
def open_image(file: BinaryIO, decodes: bool = False, formats: Tuple[str, ...] = ()) -> Iterator[Any]:
    """Open an image with pillow; nothing is decoded yet.

    Args:
        file (BinaryIO): An open file.
        decodes (bool): True if the caller decodes the pixels.
        formats (tuple[str]): Names of pillow; by default those of :func:`list_formats`.

    Raises:
        TooCostly: The header asks for too much work.
        Exception: The file is damaged; pillow may raise anything.
    """
    from PIL import Image

    stored = file.seek(0, io.SEEK_END)
    with Image.open(_Bounded(file, stored), formats=formats or list_formats()) as image:
        if decodes:
            _check_work(image, stored)
        yield image


def _check_work(image: Any, stored: int) -> None:
    pixels = image.width * image.height
    if pixels > max(FREE, stored * MOST_PER_BYTE):
        raise TooCostly('too many pixels for its bytes')
    if pixels * _BYTES.get(image.mode, 4) > MOST_DECODED:
        raise TooCostly('too large')
    tags = getattr(image, 'tag_v2', {})
    for value in (tags[tag] for tag in _SIZES if tag in tags):
        if sum(value if isinstance(value, tuple) else [value]) > 2 * stored:
            raise TooCostly('overlapping strips')


class _Bounded(io.BufferedReader):
    """A file that refuses to be read over and over, as headers with thousands of parts ask for."""

    def __init__(self, file: Any, stored: int) -> None:
        super().__init__(getattr(file, 'raw', file))
        self.seek(0)
        self._left = _READ + _TIMES * stored

    def read(self, size: Any = -1) -> bytes:
        data = super().read(size)
        self._left -= len(data) + _CALL
        if self._left < 0:
            raise TooCostly('too many parts')
        return data

    def close(self) -> None:
        """Leave the file open for its owner."""
