"""Functions that find and read the files of a data set, and that compare its list of images with the disk.

While mmguard tries an edit, it reads some label files from memory instead of the disk.
"""

from __future__ import annotations

import errno
import importlib.util
import io
import os
import re
import warnings
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from random import Random
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar

import numpy as np

from mmguard.errors import CannotRun
from mmguard.files.containment import OUTSIDE_REASON, OutsideError, find_inside, resolve_inside
from mmguard.files.images import open_image
from mmguard.files.regular import open_regular, read_regular
from mmguard.formats.faults import Faults
from mmguard.formats.table import EXAMPLES
from mmguard.text import shorten

#: A URL begins with a scheme, or with a chain of schemes; ``labels/http://host`` is a path.
_URL = re.compile(r'[A-Za-z][\w+.:-]*://')
#: mmengine's file backends that read a disk; ``None``: mmengine chooses the backend by the path.
_BACKENDS = (None, 'local', 'disk')
#: Argument of a data set or a loader that chooses the file backend, and its old name.
_READERS = ('backend_args', 'file_client_args')
_COPY_ADVICE = 'copy the data to a disk or mount the storage, then scan that folder'


class Files:
    """Reader of files on disk, some of which may be replaced by contents in memory."""

    def __init__(self) -> None:
        self._held: Dict[str, bytes] = {}

    @contextmanager
    def replaced(self, contents: Mapping[str, bytes]) -> Iterator[None]:
        """Read ``contents`` (path -> bytes) in place of the files at these paths. Listings of folders do not change."""
        before, self._held = self._held, {os.path.abspath(path): data for path, data in contents.items()}
        try:
            yield
        finally:
            self._held = before

    def get_replacement(self, path: str) -> Optional[bytes]:
        """Return the content that replaces a file, or ``None`` if the file is not replaced."""
        return self._held.get(os.path.abspath(path)) if self._held else None

    def open(self, path: str) -> BinaryIO:
        """Open a regular file for reading.

        Raises:
            OSError: The file does not exist, may not be read, or is a folder, a pipe or a device (which could block
                forever).
        """
        held = self.get_replacement(path)
        return open_regular(path) if held is None else io.BytesIO(held)

    def read(self, path: str, limit: int) -> bytes:
        """Read a regular file of at most ``limit`` bytes.

        Raises:
            OSError: :meth:`open` fails, or the file is larger than ``limit``.
        """
        held = self.get_replacement(path)
        return read_regular(path, limit) if held is None else held


FILES = Files()


def read_head(path: str, size: int) -> bytes:
    """Return the first ``size`` bytes of a regular file, or ``b''`` if the file cannot be read."""
    try:
        with FILES.open(path) as file:
            return file.read(size)
    except (OSError, ValueError):
        return b''


def check_local(path: str) -> None:
    """Raise :class:`CannotRun` if a path is a URL.

    Example:
        >>> check_local('data/labels/http://host/a.png')
        >>> check_local('s3://bucket/labels')
        Traceback (most recent call last):
        mmguard.errors.CannotRun: s3:// is not read: copy the data to a disk or mount the storage, then scan that folder
    """
    match = _URL.match(path)
    if match is not None:
        raise CannotRun(f'{match[0]} is not read: {_COPY_ADVICE}')


def check_local_dataset(dataset: Mapping[str, Any], steps: Sequence[Mapping[str, Any]] = ()) -> None:
    """Raise :class:`CannotRun` if a data set of a config, or a step that loads labels, does not read from a disk."""
    prefix = dataset.get('data_prefix')
    for path in (*dataset.values(), *(prefix.values() if isinstance(prefix, Mapping) else ())):
        if isinstance(path, str):
            check_local(path)
    for part in (dataset, *steps):
        for arguments in (part.get(key) for key in _READERS):
            backend = arguments.get('backend') if isinstance(arguments, Mapping) else None
            if backend not in _BACKENDS:
                raise CannotRun(f'the file backend {shorten(backend)} of the config is not read: {_COPY_ADVICE}')


#: Endings of files that can be label maps.
IMAGE_ENDINGS = (
    '.png', '.bmp', '.tif', '.tiff', '.jpg', '.jpeg', '.gif', '.webp', '.pgm', '.ppm', '.pnm', '.tga', '.jp2',
)  # fmt: skip

#: Endings of the label files that are trained on, in data sets with several kinds of label files next to each other.
TRAINED_ENDINGS = ('_labelTrainIds.png', '_labelIds.png')
#: Number of files in a sample that is read a second time, small enough not to slow down the scan.
SAMPLE = 4

_Any = TypeVar('_Any')


def walk(root: str, on_error: Callable[[str, OSError], None]) -> Iterator[Tuple[str, List[str]]]:
    """Walk a folder and its subfolders, each once, and follow links.

    ``on_error`` is called for folders that are not searched: unreadable ones, system folders (/proc, /sys, /dev), and
    other file systems that are not reached by a link.

    Yields:
        tuple[str, list[str]]: A folder, and the sorted names of its entries that are not folders.
    """
    seen: Set[Tuple[int, int]] = set()
    waiting: List[Tuple[str, Optional[int]]] = [(root, None)]  # and its expected device
    while waiting:
        folder, device = waiting.pop()
        files: List[str] = []
        folders: List[Tuple[str, Optional[int]]] = []
        try:
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen:
                continue  # visited already: a link leads to it
            if device not in (None, status.st_dev) or _SYSTEM.match(
                os.path.realpath(folder) if device is None else folder
            ):
                raise OSError(errno.EXDEV, 'it is on another file system, which is not searched')
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as entries:
                for entry in entries:
                    if is_folder(entry):
                        folders.append((entry.path, None if entry.is_symlink() else status.st_dev))
                    else:
                        files.append(entry.name)
        except OSError as error:
            on_error(folder, error)
            continue
        files.sort()
        yield folder, files
        waiting += sorted(folders, key=itemgetter(0), reverse=True)


#: Folders of the system, which are not searched; /dev/shm is a disk in memory.
_SYSTEM = re.compile(r'/(proc|sys|dev(?!/shm(/|$)))(/|$)')


def _list_first_entries(folder: str, limit: Optional[int] = None) -> List[os.DirEntry]:
    """Return the first ``limit`` entries of a folder, or an empty list if the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, limit))
    except (OSError, ValueError):
        return []


def list_names(folder: str, limit: Optional[int] = None) -> List[str]:
    """Return the sorted names of the first ``limit`` entries of a folder, or [] if the folder cannot be read."""
    return sorted(entry.name for entry in _list_first_entries(folder, limit))


def list_folders(folder: str, limit: Optional[int] = None) -> List[str]:
    """Return the sorted names of the folders among the first ``limit`` entries, or [] if ``folder`` is unreadable."""
    return sorted(entry.name for entry in _list_first_entries(folder, limit) if is_folder(entry))


def is_image_name(name: str) -> bool:
    return name.lower().endswith(IMAGE_ENDINGS) and not name.startswith('.')


def is_in_images(folder: str, root: str) -> bool:
    """Return True if a folder, or one of its parents below a root, is called ``images``."""
    return 'images' in os.path.relpath(folder, root).split(os.sep)


def is_folder(entry: os.DirEntry) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def is_gray(path: str) -> bool:
    """Return True if an image has one channel, as label maps have."""
    try:
        with FILES.open(path) as file, open_image(file) as opened:
            return opened.mode in ('1', 'L', 'P', 'I', 'I;16')
    except Exception:  # a damaged file may raise anything
        return False


#: Usual names of the folders of splits, training first.
SPLIT_FOLDERS = ('train', 'training', 'val', 'valid', 'validation', 'test', 'testing', 'dev')

_LABELS = (
    'ann_dir', 'labels', 'label', 'masks', 'mask', 'gtFine', 'SegmentationClass', 'annotations', 'segmentation',
    'seg_maps', 'gt', 'labelsTr',
)  # fmt: skip
_IMAGES = ('img_dir', 'images', 'image', 'imgs', 'img', 'leftImg8bit', 'JPEGImages', 'train', 'imagesTr')
#: Endings that turn the name of a folder of images into that of its labels: train, trainannot.
_LABEL_ENDS = ('annot', '_annot', '_annotations', '_labels', '_label', '_masks', '_mask', '_gt', '_seg')


def find_label_and_image_folders(root: str) -> List[Tuple[str, str]]:
    """Return pairs (label folder, image folder) in the root of a data set, or [] if no usual names are found.

    Either one pair holds all splits, or each split has a pair: in its folder, or with names like trainannot and train.
    """
    pair = _find_pair(root)
    if pair is not None:
        return [pair]
    splits = [os.path.join(root, name) for name in SPLIT_FOLDERS]
    inside = [found for found in map(_find_pair, splits) if found is not None]
    named = [(f'{split}{end}', split) for split in splits for end in _LABEL_ENDS]
    return inside or [found for found in named if all(map(os.path.isdir, found))]


def _find_pair(root: str) -> Optional[Tuple[str, str]]:
    for label in _LABELS:
        for image in _IMAGES:
            pair = os.path.join(root, label), os.path.join(root, image)
            if all(map(os.path.isdir, pair)) and not os.path.samefile(*pair):
                return pair
    return None


def select_spread(items: Sequence[_Any], limit: int = SAMPLE) -> List[_Any]:
    """Return at most ``limit`` evenly spread elements, the same ones in each call.

    Example:
        >>> select_spread('abc'), len(select_spread(range(1000)))
        (['a', 'b', 'c'], 4)
    """
    if len(items) <= limit:
        return list(items)
    random = Random(0)
    part = len(items) / limit
    return [items[int(part * (number + random.random()))] for number in range(limit)]


#: EXIF tag of the orientation, and its values that swap height and width.
_EXIF_ORIENTATION, _TURNED = 0x0112, (5, 6, 7, 8)
#: Number of images opened to compare sizes: usually a whole data set is resized or rotated, not single images.
LOOKED_AT = 200
Size = Tuple[int, int]


def find_size_mismatches(
    root: str, names: Sequence[str], sizes: np.ndarray, boundary: str = ''
) -> Tuple[int, List[Tuple[str, Size, Size]]]:
    """Compare the sizes of images on disk with the annotations, for an evenly spread sample.

    Args:
        sizes (np.ndarray): (M, 2), height and width in the annotations; values <= 0 are unknown.
        boundary (str): Folder outside of which no image is opened, by default ``root``.

    Returns:
        tuple[int, list]: Number of compared images (0 without pillow), and (file, size on disk, size in the
        annotations) of images that have another size, both before and after their EXIF rotation, which only some
        loaders apply.
    """
    if importlib.util.find_spec('PIL') is None:  # annotations are scanned without pillow too
        return 0, []
    compared, found = 0, []
    some = np.unique(np.linspace(0, len(names) - 1, min(LOOKED_AT, len(names))).astype(int)).tolist()
    known = [n for n in some if names[n] and np.isfinite(sizes[n]).all() and (sizes[n] > 0).all()]
    for place in known:
        path = find_inside(root, names[place], boundary)
        shown = _read_sizes(path) if path else None
        if shown is not None:
            stated = (int(sizes[place][0]), int(sizes[place][1]))
            compared += 1
            if stated not in shown:
                found.append((names[place], shown[0], stated))
    return compared, found


def _read_sizes(path: str) -> Optional[List[Size]]:
    """Return the (height, width) of an image after and before its EXIF rotation, or ``None`` if it is unreadable."""
    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter('ignore')
            with open_image(file, formats=('JPEG', 'PNG', 'BMP', 'TIFF', 'WEBP')) as image:
                return [read_shown_size(image), (image.height, image.width)]
    except Exception:  # decoders raise many types for a damaged file; unreadable images are reported elsewhere
        return None


def find_missing_files(root: str, names: Sequence[str], faults: Faults, boundary: str = '') -> Tuple[int, List[str]]:
    """Find the listed files that are missing on disk.

    Args:
        boundary (str): Folder outside of which files count as missing, by default ``root``.

    Returns:
        tuple[int, list[str]]: Number of missing files, and texts for the first of them, which also name an existing
        file whose name differs only in extension or case.
    """
    by_folder: Dict[str, List[str]] = {}
    for name in names:
        by_folder.setdefault(os.path.dirname(name), []).append(name)
    count = 0
    first: List[str] = []
    for folder, listed in by_folder.items():
        try:
            there = _list_files(resolve_inside(root, folder, boundary), faults)
        except OutsideError:
            count += len(listed)
            first += [f'{name} ({OUTSIDE_REASON})' for name in listed[: EXAMPLES - len(first)]]
            continue
        missing = [name for name in listed if os.path.basename(name) not in there]
        count += len(missing)
        if missing and len(first) < EXAMPLES:
            alike = {os.path.splitext(name)[0].lower(): name for name in there if is_image_name(name)}
            for name in missing[: EXAMPLES - len(first)]:
                other = alike.get(os.path.splitext(os.path.basename(name))[0].lower())
                first.append(f'{name} (there is {other})' if other else name)
    return count, first


def _list_files(folder: str, faults: Faults) -> Set[str]:
    """Return the names in a folder. If the folder cannot be read, add a fault and return an empty set."""
    try:
        return set(os.listdir(folder))
    except FileNotFoundError:
        faults.add('the folder of images does not exist', folder)
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        faults.add(f'the folder of images cannot be read: {getattr(error, "strerror", None) or error}', folder)
    return set()


def read_shown_size(image: Any) -> Tuple[int, int]:
    """Return height and width of an open pillow image after the rotation that its EXIF tag requests."""
    width, height = image.size
    turned = image.format in ('JPEG', 'MPO') and image.getexif().get(_EXIF_ORIENTATION) in _TURNED
    return (width, height) if turned else (height, width)
