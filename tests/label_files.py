"""Label files of every form, made from an array."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional

import numpy as np
from PIL import Image

BLOCKS = np.repeat(np.repeat(np.arange(16, dtype=np.uint8).reshape(4, 4) % 5, 8, 0), 8, 1)


def write(path: Any, label: np.ndarray, mode: Optional[str] = None, **options: Any) -> str:
    """Writes an array as an image file, its folder too."""
    os.makedirs(os.path.dirname(str(path)), exist_ok=True)
    image = Image.fromarray(label)
    if mode == 'P':
        image = image.convert('L')
        image.putpalette([(37 * i + c) % 256 for i in range(256) for c in range(3)])
    elif mode is not None:
        image = image.convert(mode)
    image.save(str(path), **options)
    return str(path)


def write_copies(folder: Path, label: np.ndarray, number: int = 8) -> Path:
    """Write files with one label map: 0.png, 1.png, ..."""
    for place in range(number):
        write(folder / f'{place}.png', label)
    return folder
