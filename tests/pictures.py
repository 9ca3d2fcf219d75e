"""Content of image files: of one color, of an array, of any header."""

from __future__ import annotations

import io
import struct
import zlib
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=None)
def picture(width: int = 64, height: int = 48, kind: str = 'JPEG') -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new('L' if kind == 'PNG' else 'RGB', (width, height), 90).save(out, kind)
    return out.getvalue()


def encode(array: Any, form: str = 'PNG', mode: str = '', **options: Any) -> bytes:
    """An array as the content of an image file."""
    from PIL import Image

    image, out = Image.fromarray(array), io.BytesIO()
    if mode == 'P':
        image.putpalette([(37 * place) % 256 for place in range(768)])
    elif mode:
        image = image.convert(mode)
    image.save(out, form, **options)
    return out.getvalue()


def png(width: int, height: int, data: bytes, bits: int = 8, color: int = 0, extra: bytes = b'') -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack('>I', len(content)) + kind + content + struct.pack('>I', zlib.crc32(kind + content))

    head = chunk(b'IHDR', struct.pack('>IIBBBBB', width, height, bits, color, 0, 0, 0))
    return b'\x89PNG\r\n\x1a\n' + head + extra + chunk(b'IDAT', data) + chunk(b'IEND', b'')
