"""How label files and their images are read: what a process needs to know."""

from __future__ import annotations

import importlib.util
import io
import os
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import BinaryIO, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple, Union

import numpy as np

from mmguard.files.regular import open_regular
from mmguard.tools.scan.annotations.faults import NAMED
from mmguard.tools.scan.examples import Examples
from mmguard.tools.scan.faults import CRASHES
from mmguard.tools.scan.fetched import HEAD
from mmguard.tools.scan.yolo.listing import TextItem
from mmguard.tools.scan.yolo.rows import TextRows, add_rows, as_columns
from mmguard.tools.storage.files import FILES, Files
from mmguard.tools.storage.requests import ahead

#: Ultralytics takes no smaller ones.
SMALLEST = 10
TOO_SMALL = f'cannot be trained on: an image below {SMALLEST} pixels'
NO_END = 'is damaged: a JPEG without its end mark, which ultralytics writes anew, over the file'
_DAMAGED = 'cannot be decoded'
_START, _END = b'\xff\xd8', b'\xff\xd9'
#: Segments of a JPEG that hold its size: all frames, but not what lies between their numbers.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_MOST_SEGMENTS = 1000
#: MPO comes with JPEG: pillow knows no opener of that name.
_FORMATS = ('JPEG', 'PNG', 'BMP', 'TIFF', 'WEBP')
#: A label file is a few kilobytes.
_LARGEST = 64 << 20


def image_faults(paths: Sequence[str]) -> Iterator[str]:
    """Of each image; of far ones the next ones are on the way.

    Args:
        paths (list[str]): The images, all far or none.
    """
    if paths and FILES.is_far(paths[0]):
        return ahead(partial(_far_fault, path) for path in paths)
    return map(image_fault, paths)


def image_fault(path: str) -> str:
    """What is wrong with an image; empty: nothing that can be seen without decoding it.

    A JPEG is judged by its segments, other formats by pillow, where that is installed.
    """
    try:
        with open_regular(path) as file:
            side = _side_of_jpeg(file)
            if side is not None:
                file.seek(-2, os.SEEK_END)
                return TOO_SMALL if side < SMALLEST else '' if file.read(2) == _END else NO_END
    except (OSError, ValueError) as error:
        return f'cannot be opened: {getattr(error, "strerror", None) or error}'
    return _fault_by_pillow(path) if importlib.util.find_spec('PIL') is not None else ''


def _side_of_jpeg(file: BinaryIO) -> Optional[int]:
    """The shorter side, from the header; ``None`` where it is not as it should be, or of no JPEG."""
    if file.read(2) != _START:
        return None
    for _ in range(_MOST_SEGMENTS):
        head = file.read(4)
        if len(head) < 4 or head[0] != 0xFF:
            return None
        if head[1] in _FRAMES:
            size = file.read(5)
            return min(size[1] << 8 | size[2], size[3] << 8 | size[4]) if len(size) == 5 else None
        file.seek((head[2] << 8 | head[3]) - 2, os.SEEK_CUR)
    return None


def _far_fault(path: str) -> str:
    """As :func:`image_fault`, of the beginning of an image, and of the end of a JPEG."""
    content = FILES.content(path, most=HEAD)
    try:
        if content.error is not None:
            raise content.error
        size = len(content.data) if content.stamp is None else content.stamp[0]
        side = _side_of_jpeg(io.BytesIO(content.data))
        if side is not None:
            end = content.data[-2:] if size <= len(content.data) else FILES.end_of(path, size, len(_END))
            return TOO_SMALL if side < SMALLEST else '' if end == _END else NO_END
        if importlib.util.find_spec('PIL') is None:
            return ''
        if size > len(content.data):
            why = _fault_by_pillow(io.BytesIO(content.data), whole=False)
            if why != _DAMAGED:
                return why
            content = FILES.content(path, content.stamp)  # the size of a TIFF may be at its end
        return _fault_by_pillow(io.BytesIO(content.data))
    except (OSError, ValueError) as error:
        return f'cannot be opened: {getattr(error, "strerror", None) or error}'


def _fault_by_pillow(file: Union[str, BinaryIO], whole: bool = True) -> str:
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            with Image.open(file, formats=_FORMATS) as image:
                side = min(image.size)
                if whole:
                    image.verify()
    except Exception:  # a damaged file raises what it likes
        return _DAMAGED
    return TOO_SMALL if side < SMALLEST else ''


class TextsRead(NamedTuple):
    """What one task found.

    Attributes:
        items (int): How many it read.
        columns (np.ndarray): The rows, see :mod:`mmguard.tools.scan.yolo.rows`.
        refused (dict[str, Examples]), refused_in (set[int]): As in ``TextRows``.
        faults (dict[str, Examples]): What is wrong with a file -> (its place, whether it is the image).
        faulty (set): The same of every such file.
    """

    items: int
    columns: np.ndarray
    refused: Dict[str, Examples]
    refused_in: Set[int]
    faults: Dict[str, Examples]
    faulty: Set[Tuple[int, bool]]


@dataclass(frozen=True)
class TextSettings:
    """What the engine hands to a process together with label files, as ``MapSettings`` with label maps.

    Args:
        kpt_shape (tuple, optional): As data.yaml says.
    """

    kpt_shape: Optional[Tuple[int, int]] = None
    files: Files = field(default=FILES, compare=False, repr=False)  # it takes along what reads URLs elsewhere

    def scan(self, items: List[TextItem]) -> TextsRead:
        """One task: reads some label files, and looks at their images."""
        found = TextRows([], {}, set())
        faults: Dict[str, Examples] = {}
        faulty: Set[Tuple[int, bool]] = set()
        texts = self.files.readers([item.path for item in items if item.path], _read)
        images = image_faults([item.image for item in items if item.image])
        for number, path, image in items:
            for why, of_image in (
                (self._add(next(texts), number, found) if path else '', False),
                (next(images) if image else '', True),
            ):
                if why:
                    faults.setdefault(why, Examples(NAMED)).add((number, of_image))
                    faulty.add((number, of_image))
        return TextsRead(len(items), as_columns(found.rows), found.refused, found.refused_in, faults, faulty)

    def crashed(self, item: TextItem) -> TextsRead:
        """Of a file that ended the process that read it."""
        one = Examples(NAMED)
        one.add((item.number, not item.path))
        return TextsRead(1, as_columns([]), {}, set(), {f'cannot be read: {CRASHES}': one}, set(one.first))

    def _add(self, read: Callable[[], bytes], number: int, into: TextRows) -> str:
        try:
            text = read()
        except (OSError, ValueError) as error:
            return f'cannot be read: {getattr(error, "strerror", None) or error}'
        if len(text) > _LARGEST:
            return f'is larger than {_LARGEST >> 20} MiB'
        add_rows(text, number, self.kpt_shape, into)
        return ''


def _read(path: str) -> bytes:
    with open_regular(path) as file:
        return file.read(_LARGEST + 1)
