"""File names as they can be shown."""

from __future__ import annotations

import os
from typing import Optional

from mmguard.text.visible import visible_name


def printable(path: str, root: Optional[str] = None) -> str:
    r"""A file name in one line of valid text, relative to ``root`` where it lies below it.

    Example:
        >>> printable('/data/labels/a\nb.png', '/data')
        'labels/a\\nb.png'
    """
    if root and path.startswith(root.rstrip(os.sep) + os.sep):
        path = path[len(root.rstrip(os.sep)) + 1 :]
    return visible_name(path)
