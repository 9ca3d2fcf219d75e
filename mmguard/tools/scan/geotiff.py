"""GeoTIFF: the value that a file declares as "no data"."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

#: GDAL writes the value into this tag, as text.
_NODATA, _SAMPLE_FORMAT, _SIGNED = 42113, 339, 2
#: NaN and numbers beyond 32 bits are counted as this: mmseg's cast to 8 bits makes 0 of it, as it does of them.
BEYOND = -(1 << 31)


def nodata_of(image: Any) -> str:
    """What an open image of pillow declares as no data, ``'-9999'``; empty where it declares nothing.

    The text of the tag, but for whole numbers below 0 in files whose values pillow takes for positive ones, and the
    reverse: these are as pillow returns them.
    """
    tags = getattr(image, 'tag_v2', None)
    text = None if tags is None else tags.get(_NODATA)
    if tags is None or not isinstance(text, str):
        return ''
    text = text.strip('\0 ')
    value = as_number(text)
    if value is None:
        return ''
    if image.mode == 'L' and -128 <= value < 0 and _SIGNED in (tags.get(_SAMPLE_FORMAT) or ()):
        return f'{value + 256:g}'
    if image.mode == 'I' and (1 << 31) <= value < (1 << 32):
        return f'{value - (1 << 32):.0f}'
    return text


def as_number(text: str) -> Optional[float]:
    """The number that a declaration is; ``None``: it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def counted_as(text: str) -> Optional[int]:
    """The value under which the pixels of a declared number are counted; ``None`` where no label map holds it.

    Example:
        >>> counted_as('-9999'), counted_as('nan'), counted_as('-3.4028234663852886e+38'), counted_as('0.5')
        (-9999, -2147483648, -2147483648, None)
    """
    value = as_number(text)
    if value is None:
        return None
    if not math.isfinite(value) or abs(value) > -BEYOND:
        return BEYOND
    return int(value) if value == int(value) else None


def without_odd_nodata(values: np.ndarray, text: str) -> np.ndarray:
    """(H, W), as it was or in float64 or int64, with :data:`BEYOND` where a declared NaN or far number stands."""
    value = as_number(text)
    if value is None or counted_as(text) != BEYOND:
        return values
    floating = values.dtype.kind == 'f'
    if not floating and not math.isfinite(value):
        return values
    there = np.isnan(values) if math.isnan(value) else values == (values.dtype.type(value) if floating else int(value))
    return np.where(there, BEYOND, values.astype(np.float64 if floating else np.int64)) if there.any() else values
