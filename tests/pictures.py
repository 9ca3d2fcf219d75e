"""Pictures of one color."""

from __future__ import annotations

import io
from functools import lru_cache


@lru_cache(maxsize=None)
def picture(width: int = 64, height: int = 48, kind: str = 'JPEG') -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new('L' if kind == 'PNG' else 'RGB', (width, height), 90).save(out, kind)
    return out.getvalue()
