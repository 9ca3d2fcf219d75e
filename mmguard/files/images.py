"""The only opener of images: formats are plain rasters, and the work that a header asks for is bounded."""

from __future__ import annotations

import io
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, BinaryIO, Iterator, Tuple

#: Formats that are read: only plain rasters, because pillow would start Ghostscript for an EPS that is named .png.
_FORMATS = ('PNG', 'JPEG', 'BMP', 'TIFF', 'GIF', 'WEBP', 'PPM', 'TGA', 'JPEG2000')
#: Maximum number of bytes of decoded pixels; pixels of these modes count 1 or 8 bytes, with copies, others 4.
MOST_DECODED, _BYTES = 1 << 28, {'1': 1, 'L': 1, 'P': 1, 'I': 8, 'F': 8}
#: Number of pixels that any file may have, and per byte of its file (of one bit: 8 times). Deflate reaches 1,032.
FREE, MOST_PER_BYTE = 1 << 24, 2048
#: Maximum number of pixels of a JPEG times its scans: each scan goes over all of them.
MOST_SCANNED = 1 << 31
#: Bytes that pillow may read of a file, in addition to several times its size, and those that each reading counts.
_READ, _TIMES, _CALL = 1 << 26, 8, 1 << 12


class TooCostly(MemoryError):
    """A file that asks for too much work; the message says in a few words what there is too much of."""


@lru_cache(maxsize=None)
def _list_formats() -> Tuple[str, ...]:
    from PIL import Image  # not at the top: annotation files are scanned without pillow

    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


@contextmanager
def open_image(file: BinaryIO, decodes: bool = False, formats: Tuple[str, ...] = ()) -> Iterator[Any]:
    """Open an image with pillow, which may raise anything for a damaged file; ``formats`` are its names.

    Raises:
        TooCostly: With ``decodes``, the header asks for too much work.
    """
    from PIL import Image

    stored = file.seek(0, io.SEEK_END)
    with Image.open(_Bounded(file, stored), formats=formats or _list_formats()) as image:
        if decodes:
            pixels = image.width * image.height
            if pixels > max(FREE, stored * MOST_PER_BYTE * (8 if image.mode == '1' else 1)):
                raise TooCostly('too many pixels for its bytes')
            copies = 3 if image.format == 'WEBP' else 1
            if pixels * _BYTES.get(image.mode, 4) * copies > MOST_DECODED:
                raise TooCostly('too large')
            if image.format in ('JPEG', 'MPO') or image.info.get('compression') == 'jpeg':
                file.seek(0)
                if pixels * file.read(MOST_DECODED).count(b'\xff\xda') > MOST_SCANNED:
                    raise TooCostly('too many parts')
        yield image


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
