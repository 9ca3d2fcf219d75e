"""Walks folders: in a fixed order, one folder in memory at a time, and not for ever."""

from __future__ import annotations

import os
from typing import Callable, Iterator, List, Mapping, NamedTuple, Set, Tuple

from mmguard.tools.storage.entries import Entry, Stamp
from mmguard.tools.storage.files import FILES

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

#: A server may list a folder in itself; nobody lays out labels deeper than this.
_DEEPEST = 32


class Folder(NamedTuple):
    """The files of a folder.

    Attributes:
        path (str): The folder.
        names (list[str]): What is in it and no folder, sorted.
        stamps (dict[str, tuple]): Of far files, where the listing says them.
    """

    path: str
    names: List[str]
    stamps: Mapping[str, Stamp] = {}


def walk(root: str, on_error: Callable[[str, OSError], None]) -> Iterator[Folder]:
    """Goes through a folder and those in it, links followed, none twice.

    Args:
        root (str): The folder.
        on_error (callable): Called with a folder that cannot be read, and why.

    Yields:
        Folder: One after the other.
    """
    if FILES.is_far(root):
        yield from _walk_far(root, on_error)
        return
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
                    (folders if is_folder(entry) else files).append(entry.name)
        except OSError as error:
            on_error(folder, error)
            continue
        files.sort()
        folders.sort(reverse=True)
        yield Folder(folder, files)
        waiting += [os.path.join(folder, name) for name in folders]


def _walk_far(root: str, on_error: Callable[[str, OSError], None]) -> Iterator[Folder]:
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            entries = FILES.entries(folder)
        except OSError as error:
            on_error(folder, error)
            continue
        yield _files_of(folder, entries)
        if folder.count('/') - root.count('/') < _DEEPEST:
            waiting += [f'{folder}/{entry.name}' for entry in reversed(entries) if entry.is_folder]


def _files_of(folder: str, entries: List[Entry]) -> Folder:
    files = [entry for entry in entries if not entry.is_folder]
    return Folder(folder, [file.name for file in files], {file.name: file.stamp for file in files if file.stamp})


def files_in(folder: str) -> Folder:
    """The files of a folder; none where it cannot be read."""
    try:
        if FILES.is_far(folder):
            return _files_of(folder, FILES.entries(folder))
        return Folder(folder, sorted(os.listdir(folder)))
    except OSError:
        return Folder(folder, [])


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_ENDINGS) and not name.startswith('.')


def is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def is_gray(path: str) -> bool:
    """Whether an image has one channel, as label maps have."""
    try:
        from PIL import Image

        with FILES.open(path) as file, Image.open(file) as opened:
            return opened.mode in ('1', 'L', 'P', 'I', 'I;16')
    except Exception:  # a damaged file raises what it likes
        return False
