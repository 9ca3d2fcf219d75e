"""Folders with COCO files: ``annotations/instances_val.json``, or ``train/_annotations.coco.json`` beside images."""

from __future__ import annotations

import json
import os
import re
from itertools import islice
from typing import Iterator, List, Match, NamedTuple

from mmguard.files.inside import find_inside
from mmguard.files.regular import open_regular
from mmguard.tools.scan.sources.folders import is_gray, is_image_name

SPLITS = ('train', 'val', 'valid', 'validation', 'test')
#: Files of whole images, of captions, and without any annotation.
_OTHERS = ('image_info', 'captions', 'labels')
#: So many names of a folder are looked at, and so many JSON of them; so much of a JSON tells what it is.
_NAMES, _OPENED, _HEAD = 5000, 20, 1 << 16
#: So many images are looked for, to find their folder.
_LOOKED_FOR = 20
_KEYS = re.compile(rb'"(images|annotations|categories)"\s*:\s*\[')
_FILE = re.compile(rb'"file_name"\s*:\s*("(?:[^"\\]|\\.)*")')


class CocoFile(NamedTuple):
    """A COCO file of a folder."""

    name: str  #: Relative to the folder.
    path: str  #: The file.
    images: str  #: The folder of its images; empty: not found.


def coco_files(root: str) -> List[CocoFile]:
    """Return the COCO files in a folder, in ``annotations``, in those of splits, or in the only folder in it.

    There are none where label maps are among them.
    """
    found = [file for place in ('', 'annotations', *SPLITS) for file in _files_in(root, place)]
    names = _names_in(root)
    if found or len(names) != 1:
        return found
    (only,) = names
    return [one._replace(name=os.path.join(only, one.name)) for one in coco_files(os.path.join(root, only))]


def _files_in(root: str, place: str) -> Iterator[CocoFile]:
    folder = os.path.join(root, place)
    names = _names_in(folder)
    first = next((name for name in names if is_image_name(name)), '')
    if first and is_gray(os.path.join(folder, first)):
        return
    named = [name for name in names if name.lower().endswith('.json') and not name.startswith(_OTHERS)]
    heads = {name: _head_of(os.path.join(folder, name)) for name in named[:_OPENED]}
    if not any(map(_is_coco, heads.values())):
        return
    for name, head in heads.items():
        # Of a damaged one nobody can tell: a scan says what is wrong with it.
        if _is_coco(head) or head.lstrip()[:1] not in (b'{', b'['):
            path = os.path.join(folder, name)
            yield CocoFile(os.path.join(place, name), path, _images_of(root, path, head))


def _names_in(folder: str) -> List[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, _NAMES))
    except OSError:
        return []


def _head_of(path: str) -> bytes:
    try:
        with open_regular(path) as file:
            return file.read(_HEAD)
    except (OSError, ValueError):
        return b''


def _is_coco(head: bytes) -> bool:
    is_object = head.lstrip(b'\xef\xbb\xbf \t\r\n')[:1] == b'{'
    return is_object and _KEYS.search(head) is not None and b'"dm_format_version"' not in head


def _images_of(root: str, path: str, head: bytes) -> str:
    """The first of the usual folders that holds one of the images that are named first, else that holds any."""
    root = os.path.dirname(os.path.abspath(root)) if os.path.basename(root) == 'annotations' else root
    split = os.path.splitext(os.path.basename(path))[0].rpartition('_')[2]
    beside = os.path.dirname(path)
    ways = (('images', split), (split,), ('images',), (split, 'images'), ())
    places = [beside, os.path.join(beside, 'images'), *(os.path.join(root, *way) for way in ways)]
    named = list(filter(None, map(_text_of, islice(_FILE.finditer(head), _LOOKED_FOR))))
    holding = (one for one in places for image in named if os.path.isfile(find_inside(one, image)))
    usual = (one for one in places[:-1] if any(map(is_image_name, _names_in(one))))
    return next(holding, '') or next(usual, '')


def _text_of(found: Match[bytes]) -> str:
    try:
        return str(json.loads(found.group(1).decode('utf-8', 'replace')))
    except ValueError:
        return ''
