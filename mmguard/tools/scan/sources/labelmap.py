"""The class list beside label maps that CVAT and Datumaro export as colours: ``labelmap.txt``."""

from __future__ import annotations

import os
import re
from typing import Dict, Tuple

from mmguard.files.regular import open_regular

NAME = 'labelmap.txt'
#: More bytes are no class list.
_LARGEST = 1 << 20
_LINE = re.compile(r'([^:#][^:]*):(\d{1,3}),(\d{1,3}),(\d{1,3}):[^:]*:[^:]*')


def read_labelmap(folder: str) -> Dict[Tuple[int, int, int], str]:
    """Red, green, blue -> name of the class, in the order of the file; empty where there is none, or it is damaged.

    Args:
        folder (str): That of the label maps, or of the data set: it lies there, or in the folder above.
    """
    for place in (folder, os.path.dirname(os.path.abspath(folder))):
        try:
            with open_regular(os.path.join(place, NAME)) as file:
                lines = file.read(_LARGEST).decode('utf-8-sig').splitlines()
        except (OSError, ValueError):
            continue
        found = [_LINE.fullmatch(line.strip()) for line in lines if line.strip() and not line.startswith('#')]
        colours: Dict[Tuple[int, int, int], str] = {}
        for match in found:
            if match is not None and all(int(match[part]) < 256 for part in (2, 3, 4)):
                colours.setdefault((int(match[2]), int(match[3]), int(match[4])), match[1].strip())
        if colours and len(colours) == len(found):
            return colours
    return {}
