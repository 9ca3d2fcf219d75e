"""Opening of images: only plain raster formats are read, and the work that a file header can cause is limited."""

from __future__ import annotations

import io
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, BinaryIO, Iterator, Tuple

#: Formats that are read: only plain rasters, because pillow would start Ghostscript for an EPS that is named .png.
_FORMATS = ('PNG', 'JPEG', 'BMP', 'TIFF', 'GIF', 'WEBP', 'PPM', 'TGA', 'JPEG2000')
#: Maximum size of the decoded pixels in bytes; bytes per pixel by pillow's mode, with copies (other modes: 4).
MOST_DECODED, _BYTES = 1 << 28, {'1': 1, 'L': 1, 'P': 1, 'I': 8, 'F': 8}
#: Number of pixels that any file may have; pixels per byte of files with more (1-bit: 8 times). Deflate reaches 1,032.
FREE, MOST_PER_BYTE = 1 << 24, 2048
#: Maximum product of the numbers of pixels and scans of a JPEG, because each scan goes over all pixels.
MOST_SCANNED = 1 << 31
#: pillow may read _READ bytes plus _TIMES the size of the file; each call of ``read`` counts as _CALL more bytes.
_READ, _TIMES, _CALL = 1 << 26, 8, 1 << 12


class TooCostly(MemoryError):
    """Error for an image that takes too much work to decode. The message is the reason, e.g. 'too large'."""


@lru_cache(maxsize=None)
def _list_formats() -> Tuple[str, ...]:
    from PIL import Image  # not at the top: annotation files are scanned without pillow

    Image.init()
    return tuple(name for name in _FORMATS if name in Image.OPEN)


@contextmanager
def open_image(file: BinaryIO, decodes: bool = False, formats: Tuple[str, ...] = ()) -> Iterator[Any]:
    """Open an image with pillow, in one of ``formats`` (pillow's names). A damaged file may raise any exception.

    Raises:
        TooCostly: Reading takes too much work, or ``decodes`` is true and decoding the image would.
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
    """File that limits the total number of bytes read, because pillow rereads a header with thousands of parts."""

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
        """Leave the file open: the caller of :func:`open_image` closes the file."""
