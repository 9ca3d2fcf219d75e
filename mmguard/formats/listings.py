"""Folders of label maps: traversal in a fixed order, and the usual layouts."""

from __future__ import annotations

import os
from itertools import islice
from random import Random
from typing import Callable, Iterator, List, Optional, Sequence, Set, Tuple, TypeVar

from mmguard.formats.files import FILES

#: Endings of files that can be label maps.
IMAGE_ENDINGS = (
    '.png', '.bmp', '.tif', '.tiff', '.jpg', '.jpeg', '.gif', '.webp', '.pgm', '.ppm', '.pnm', '.tga', '.jp2',
)  # fmt: skip

#: Endings of the label files that are trained on, in data sets with several kinds of label files next to each other.
TRAINED_ENDINGS = ('_labelTrainIds.png', '_labelIds.png')
#: Number of files that are decoded a second time, small enough not to slow down the scan.
SAMPLE = 4

_Any = TypeVar('_Any')


def walk(root: str, on_error: Callable[[str, OSError], None]) -> Iterator[Tuple[str, List[str]]]:
    """Walk a folder and its subfolders, each once, following links; pass unreadable folders to ``on_error``.

    Yields:
        tuple[str, list[str]]: A folder, and the sorted names of its entries that are not folders.
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
                continue  # a link back to a folder on the way here
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    (folders if is_folder(entry) else files).append(entry.name)
        except OSError as error:
            on_error(folder, error)
            continue
        files.sort()
        folders.sort(reverse=True)
        yield folder, files
        waiting += [os.path.join(folder, name) for name in folders]


def names_in(folder: str) -> List[str]:
    """Return the sorted names in a folder; empty if it cannot be read."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def first_entries(folder: str, most: Optional[int] = None) -> List[os.DirEntry]:
    """Return the first entries of a folder; empty if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, most))
    except (OSError, ValueError):
        return []


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_ENDINGS) and not name.startswith('.')


def is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def is_gray(path: str) -> bool:
    """Return True if an image has one channel, as label maps have."""
    try:
        from PIL import Image

        with FILES.open(path) as file, Image.open(file) as opened:
            return opened.mode in ('1', 'L', 'P', 'I', 'I;16')
    except Exception:  # a damaged file may raise anything
        return False


_LABELS = (
    'ann_dir', 'labels', 'label', 'masks', 'mask', 'gtFine', 'SegmentationClass', 'annotations', 'segmentation',
    'seg_maps', 'gt', 'trainannot', 'labelsTr',
)  # fmt: skip
_IMAGES = ('img_dir', 'images', 'image', 'imgs', 'img', 'leftImg8bit', 'JPEGImages', 'train', 'imagesTr')


def label_and_image_folders(root: str) -> Optional[Tuple[str, str]]:
    """Return the folders of labels and images in a data set's root; ``None`` if their names are not distinctive."""
    for label in _LABELS:
        for image in _IMAGES:
            pair = os.path.join(root, label), os.path.join(root, image)
            if all(map(os.path.isdir, pair)) and not os.path.samefile(*pair):
                return pair
    return None


def spread(items: Sequence[_Any], most: int = SAMPLE) -> List[_Any]:
    """Return a few evenly spread elements, the same ones each time.

    Example:
        >>> spread('abc'), len(spread(range(1000)))
        (['a', 'b', 'c'], 4)
    """
    if len(items) <= most:
        return list(items)
    random = Random(0)
    part = len(items) / most
    return [items[int(part * (number + random.random()))] for number in range(most)]
