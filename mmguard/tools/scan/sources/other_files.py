"""What a folder without label maps holds instead, and where its labels could be."""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import Sequence

from mmguard.tools.storage.files import FILES

#: So many files are looked at: a folder is mostly of one kind.
ENOUGH = 200

#: So many texts are opened.
_TEXTS = 50

#: So much of a JSON tells what it is.
_HEAD = 1 << 14

_VOLUMES = ('.nii.gz', '.nii', '.mha', '.mhd', '.nrrd', '.dcm')
_YOLO = re.compile(rb'\s*\d+( +-?[\d.]+(e-?\d+)?){4,}\s*(\n|$)')


def words_of(files: Sequence[str], suffix: str = '') -> str:
    """Say what the first files that were found are, and what to name instead."""
    if not files:
        return 'It holds no files: is the path right, is a disk not mounted?'
    if suffix:
        return f'No name ends with {suffix} (--suffix); the first is {os.path.basename(files[0])}'
    kinds = Counter(map(_ending, files))
    ending = max(kinds, key=lambda kind: kinds[kind])
    first = next(file for file in files if _ending(file) == ending)
    if ending in _VOLUMES:
        return (
            f'Here are volumes ({ending}): of nnU-Net name the raw data set, the folder with dataset.json; slices for '
            'MMSegmentation are scanned when they are label maps (.png)'
        )
    if looks_like_yolo(files):
        return (
            'It looks like YOLO labels (.txt, a class and a box per line): name the folder that holds nothing but '
            'them and their images, or the data.yaml'
        )
    if ending == '.json':
        return f'Here is JSON: a file of COCO or LVIS is named itself, e.g. {first}'
    if ending == '.xml':
        return 'Here is XML without boxes of VOC in Annotations/ or directly in it'
    return (
        f'Here are {ending or "files without ending"}, e.g. {os.path.basename(first)}: label maps are .png, .bmp, .tif'
    )


def words_of_json(file: str, ended_early: bool = False) -> str:
    """What a JSON that holds no image, annotation or category is; empty where it cannot be read (to its end)."""
    try:
        with FILES.open(file) as opened:
            head = opened.read(_HEAD).decode(errors='replace').lstrip()
    except (OSError, ValueError):
        return ''
    keys = list(dict.fromkeys(re.findall(r'"(\w+)"\s*:', head)))
    if head.startswith('['):
        if 'score' in keys:
            return "It looks like predictions in COCO's format, a list with scores: name the file of the annotations"
        return 'It is a list; a COCO file is an object with "images", "annotations" and "categories"'
    if not head.startswith('{'):
        return ''
    if 'shapes' in keys:
        return 'It looks like a file of Labelme, but "shapes" is no list'
    if {'images', 'annotations', 'categories'} & set(keys):
        return '' if ended_early else 'It is a COCO file without images, annotations and categories'
    return f'It is no COCO file: {"its keys are " + ", ".join(keys[:6]) if keys else "it is an empty object"}'


def _ending(file: str) -> str:
    name = os.path.basename(file).lower()
    return '.nii.gz' if name.endswith('.nii.gz') else os.path.splitext(name)[1]


def looks_like_yolo(files: Sequence[str]) -> bool:
    """Whether most of these files are texts, and one is of YOLO: an image without objects has an empty one."""
    texts = [file for file in files if _ending(file) == '.txt']
    return 2 * len(texts) > len(files) and any(map(_is_yolo, texts[:_TEXTS]))


def _is_yolo(file: str) -> bool:
    try:
        with FILES.open(file) as opened:  # of a pipe it waits for nothing
            return _YOLO.match(opened.read(4096)) is not None
    except OSError:
        return False
