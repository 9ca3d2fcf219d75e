"""Whether an image can be opened: what its first bytes and its last ones say."""

from __future__ import annotations

import importlib.util
import io
import os
import warnings
from functools import partial
from typing import BinaryIO, Iterator, Optional, Sequence, Union

from mmguard.files.regular import open_regular
from mmguard.tools.scan.fetched import HEAD
from mmguard.tools.storage.ahead import ahead
from mmguard.tools.storage.files import FILES

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
