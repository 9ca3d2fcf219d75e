"""Folders with COCO files: ``annotations/instances_val.json``, or ``train/_annotations.coco.json`` beside images."""

from __future__ import annotations

import json
import os
import re
from itertools import islice
from typing import List, NamedTuple

from mmguard.tools.scan.sources.folders import is_image_name
from mmguard.tools.storage.files import open_regular

SPLITS = ('train', 'val', 'valid', 'validation', 'test')
#: Files of whole images, of captions, and without any annotation.
_OTHERS = ('image_info', 'captions', 'labels')
#: So many names of a folder are looked at, and so many JSON of them; so much of a JSON tells what it is.
_NAMES, _OPENED, _HEAD = 5000, 20, 1 << 16
_KEYS = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
_FILE = re.compile(r'"file_name"\s*:\s*("(?:[^"\\]|\\.)*")')


class CocoFile(NamedTuple):
    """A COCO file of a folder.

    Attributes:
        name (str): Relative to the folder.
        path (str): The file.
        images (str): The folder of its images; empty: not found.
    """

    name: str
    path: str
    images: str


def coco_files(root: str) -> List[CocoFile]:
    """The COCO files of a data set's folder; none where it holds none, or label maps beside them.

    Args:
        root (str): A folder with JSON in it, in ``annotations``, or in those of splits.
    """
    found: List[CocoFile] = []
    if not os.path.isdir(root):
        return found
    for place in ('', 'annotations', *SPLITS):
        folder = os.path.join(root, place)
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in islice(entries, _NAMES))
        except OSError:
            continue
        maps = next((name for name in names if is_image_name(name)), '')
        files = [] if maps and is_gray(os.path.join(folder, maps)) else names
        named = [name for name in files if name.lower().endswith('.json') and not name.startswith(_OTHERS)]
        for name in named[:_OPENED]:
            path = os.path.join(folder, name)
            head = _head_of(path)
            if head:
                found.append(CocoFile(os.path.join(place, name), path, _images_of(root, path, head)))
    return found


def _head_of(path: str) -> str:
    """The beginning of a COCO file; empty for any other."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return ''
    is_coco = (
        head.lstrip(b'\xef\xbb\xbf \t\r\n')[:1] == b'{' and _KEYS.search(head) and b'"dm_format_version"' not in head
    )
    return head.decode('utf-8', 'replace') if is_coco else ''


def is_gray(path: str) -> bool:
    """Whether an image has one channel, as label maps have."""
    try:
        from PIL import Image

        with Image.open(path) as opened:
            return opened.mode in ('1', 'L', 'P', 'I', 'I;16')
    except Exception:  # a damaged file raises what it likes
        return False


def _images_of(root: str, path: str, head: str) -> str:
    """The first of the usual folders that holds the image that is named first."""
    named = _FILE.search(head)
    try:
        image = json.loads(named.group(1)) if named else ''
    except ValueError:
        return ''
    root = os.path.dirname(os.path.abspath(root)) if os.path.basename(root) == 'annotations' else root
    split = os.path.splitext(os.path.basename(path))[0].rpartition('_')[2]
    beside = os.path.dirname(path)
    places = (beside, os.path.join(beside, 'images'), *(os.path.join(root, *way) for way in (
        ('images', split), (split,), ('images',), (split, 'images'), (),
    )))  # fmt: skip
    is_name = isinstance(image, str) and image and '\0' not in image
    return next((one for one in places if is_name and os.path.isfile(os.path.join(one, image))), '')
