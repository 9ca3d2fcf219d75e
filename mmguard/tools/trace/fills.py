"""What a transform fills empty places with, and how it interpolates: from its attributes."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Tuple

_FILL = re.compile(r'pad_val|pal_val|fill|border_val|cval|ignore_(label|index)|mask_value|seg_pad')
_IMAGE = re.compile(r'img|image|bbox')
_DEPTH = 4


def fills(transform: Any) -> Dict[int, str]:
    """Fill value of label maps -> the argument that says it, ``seg_pad_val=255``."""
    found: Dict[int, str] = {}
    # Arguments that name the label map come first: where pad_val=0 fills the image, it does not fill the label map.
    named = sorted(_attributes(transform), key=lambda item: 'seg' not in item[0] and 'mask' not in item[0])
    for name, value in named:
        if _FILL.search(name) and not _IMAGE.search(name) and isinstance(value, (int, float)) and value == int(value):
            found.setdefault(int(value), f'{name}={int(value)}')
    return found


def interpolations(transform: Any) -> List[Tuple[str, str]]:
    """``[('interpolation', 'bilinear')]``, also of transforms inside."""
    return [
        (name, str(value)) for name, value in _attributes(transform) if 'interpolation' in name and value is not None
    ]


def _attributes(thing: Any, path: str = '', depth: int = 0) -> Iterator[Tuple[str, Any]]:
    """Plain values among its attributes, those of dicts and of transforms inside included."""
    if depth > _DEPTH:
        return
    if isinstance(thing, dict):
        items = [(str(key), value) for key, value in thing.items()]
    elif isinstance(thing, (list, tuple)):
        items = [('', value) for value in thing]
    else:
        items = list(getattr(thing, '__dict__', {}).items())
    for key, value in items:
        name = f'{path}.{key}' if path and key else path or key
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            yield name, value
        elif isinstance(value, (dict, list, tuple)) or hasattr(value, 'transform') or hasattr(value, 'transforms'):
            # Transforms inside are described by their own arguments.
            yield from _attributes(value, name if isinstance(value, dict) else '', depth + 1)
