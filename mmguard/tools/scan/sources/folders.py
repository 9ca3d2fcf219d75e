"""Walks folders: in a fixed order, one folder in memory at a time, and not for ever."""

from __future__ import annotations

import os
from typing import Callable, Iterator, List, Set, Tuple

#: Endings of files that can be label maps.
IMAGE_ENDINGS = (
    '.png',
    '.bmp',
    '.tif',
    '.tiff',
    '.jpg',
    '.jpeg',
    '.gif',
    '.webp',
    '.pgm',
    '.ppm',
    '.pnm',
    '.tga',
    '.jp2',
)


def walk(root: str, on_error: Callable[[str, OSError], None]) -> Iterator[Tuple[str, List[str]]]:
    """Goes through a folder and those in it, links followed, none twice.

    Args:
        root (str): The folder.
        on_error (callable): Called with a folder that cannot be read, and why.

    Yields:
        tuple: A folder and the sorted names in it that are no folders.
    """
    seen: Set[Tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        files: List[str] = []
        folders: List[str] = []
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen:
                continue  # a link back to where we come from
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    (folders if _is_folder(entry) else files).append(entry.name)
        except OSError as error:
            on_error(folder, error)
            continue
        files.sort()
        folders.sort(reverse=True)
        yield folder, files
        waiting += [os.path.join(folder, name) for name in folders]


def names_in(folder: str) -> List[str]:
    """The sorted names in a folder; none where it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_ENDINGS) and not name.startswith('.')


def _is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False
