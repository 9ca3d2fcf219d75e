"""Comparison of the listed images with the disk: missing files, with one listing per folder, and image sizes."""

from __future__ import annotations

import importlib.util
import os
import warnings
from typing import Dict, List, Optional, Sequence, Set, Tuple

import numpy as np

from mmguard.files.inside import OUTSIDE, OutsideError, find_inside, resolve_inside
from mmguard.files.regular import open_regular
from mmguard.formats.faults import Faults
from mmguard.formats.listings import is_image_name
from mmguard.formats.maps.forms import read_shown_size
from mmguard.formats.table import EXAMPLES

#: Number of images opened to compare sizes: usually a whole data set is resized or turned, not single images.
LOOKED_AT = 200
Size = Tuple[int, int]


def other_sizes(
    root: str, names: Sequence[str], sizes: np.ndarray, within: str = ''
) -> Tuple[int, List[Tuple[str, Size, Size]]]:
    """Compare image sizes on disk, for an even sample of the list, with the annotations.

    Args:
        sizes (np.ndarray): (M, 2), height and width in the annotations; values not above 0 are unknown.
        within (str): Folder that names must not leave, by default ``root``.

    Returns:
        tuple[int, list]: Number of compared images (0 without pillow), and (file, size on disk, size stated) of those
        that differ both with and without their EXIF rotation, because only some loaders apply it.
    """
    if importlib.util.find_spec('PIL') is None:  # annotations are scanned without pillow too
        return 0, []
    compared, found = 0, []
    some = np.unique(np.linspace(0, len(names) - 1, min(LOOKED_AT, len(names))).astype(int)).tolist()
    known = [n for n in some if names[n] and np.isfinite(sizes[n]).all() and (sizes[n] > 0).all()]
    for place in known:
        path = find_inside(root, names[place], within)
        shown = _read_sizes(path) if path else None
        if shown is not None:
            stated = (int(sizes[place][0]), int(sizes[place][1]))
            compared += 1
            if stated not in shown:
                found.append((names[place], shown[0], stated))
    return compared, found


def _read_sizes(path: str) -> Optional[List[Size]]:
    """Return :func:`read_shown_size` of a file and its stored size; ``None`` if it cannot be read."""
    from PIL import Image

    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            with Image.open(file, formats=('JPEG', 'PNG', 'BMP', 'TIFF', 'WEBP')) as image:
                return [read_shown_size(image), (image.height, image.width)]
    except Exception:  # decoders raise many types for a damaged file; unreadable images are reported elsewhere
        return None


def missing_files(root: str, names: Sequence[str], faults: Faults, within: str = '') -> Tuple[int, List[str]]:
    """Compare a list of files with the content of their folders.

    Args:
        within (str): Folder that names must not leave, by default ``root``. Those that do are not looked up, and count
            as missing.

    Returns:
        tuple[int, list[str]]: Number of missing files, and the first of them, with the existing file if only the
        extension or the case differs.
    """
    by_folder: Dict[str, List[str]] = {}
    for name in names:
        by_folder.setdefault(os.path.dirname(name), []).append(name)
    count = 0
    first: List[str] = []
    for folder, listed in by_folder.items():
        try:
            there = _files_in(resolve_inside(root, folder, within), faults)
        except OutsideError:
            count += len(listed)
            first += [f'{name} ({OUTSIDE})' for name in listed[: EXAMPLES - len(first)]]
            continue
        missing = [name for name in listed if os.path.basename(name) not in there]
        count += len(missing)
        if missing and len(first) < EXAMPLES:
            alike = {os.path.splitext(name)[0].lower(): name for name in there if is_image_name(name)}
            for name in missing[: EXAMPLES - len(first)]:
                other = alike.get(os.path.splitext(os.path.basename(name))[0].lower())
                first.append(f'{name} (there is {other})' if other else name)
    return count, first


def _files_in(folder: str, faults: Faults) -> Set[str]:
    """Return the names in a folder."""
    try:
        return set(os.listdir(folder))
    except FileNotFoundError:
        faults.add('the folder of images does not exist', folder)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        faults.add(f'the folder of images cannot be read: {getattr(error, "strerror", None) or error}', folder)
    return set()
