"""Labelme: a folder of JSON, one for each image."""

from __future__ import annotations

import json
import os
from typing import Any, List, Optional, Sequence, Tuple

from mmguard.files.inside import resolve_inside
from mmguard.files.regular import open_regular
from mmguard.findings.facts import LabelFacts
from mmguard.tools.scan.annotations.disk import shown_size
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.labelme_facts import NO_CLASS, facts_of_shapes, labels_of
from mmguard.tools.scan.annotations.labelme_json import ShapeFile, is_of_others, read_labelme, size_of_data
from mmguard.tools.scan.sources.folders import is_gray, is_image_name, walk
from mmguard.tools.storage.files import FILES

#: Lists of classes, in the folder or above it.
LISTS = ('labels.txt', 'classes.txt')
#: So many files of a folder are looked at to tell what it is, and so many JSON of them.
_FILES, _OPENED = 2000, 20
#: So many times as many label maps as JSON, and it is a folder of label maps.
_STRAY = 10
#: Of a larger JSON the first bytes say what it is.
_HEAD = 1 << 16
#: More bytes are no list of classes.
_LARGEST_LIST = 8 << 20


def is_labelme(target: str) -> bool:
    """Whether a target is a JSON of Labelme, or a folder of which at least half of the JSON are."""
    if os.path.isfile(target):
        return target.lower().endswith('.json') and is_labelme_file(target)
    found: List[str] = []
    images: List[str] = []
    seen = 0
    for place, names, _ in walk(target, lambda *_: None):
        seen += len(names)
        found += [os.path.join(place, name) for name in names if name.lower().endswith('.json')]
        images += [os.path.join(place, name) for name in names if is_image_name(name)]
        if seen > _FILES:
            break
    if not found or (_STRAY * len(found) < len(images) and is_gray(images[0])):
        return False  # label maps, and what is left of how they were drawn
    some = found[:_OPENED]
    return 2 * sum(map(is_labelme_file, some)) >= len(some)


def is_labelme_file(path: str) -> bool:
    """Whether a JSON is of Labelme."""
    record = _beginning(path)
    return isinstance(record, dict) and isinstance(record.get('shapes'), list)


def is_other_file(path: str) -> bool:
    """Whether a JSON is sound, and of something else."""
    return is_of_others(_beginning(path))


def _beginning(path: str) -> Any:
    """What a JSON holds; of a large one which of Labelme's keys stand in its beginning. ``None``: it is damaged."""
    try:
        head = _head(path)
        if len(head) < _HEAD:
            return json.loads(head)
    except (OSError, ValueError, RecursionError):
        return None
    is_object = head.lstrip()[:1] == b'{'
    return {'shapes': []} if is_object and b'"shapes"' in head else {'': 0} if is_object else None


def _head(path: str) -> bytes:
    if FILES.is_far(path):
        return FILES.content(path, None, _HEAD).data
    with open_regular(path) as file:
        return file.read(_HEAD)


def read_classes(path: str) -> List[str]:
    """The names of a class list, a line each."""
    with open_regular(path) as file:
        return [line.strip() for line in file.read(_LARGEST_LIST).decode('utf-8-sig').splitlines() if line.strip()]


def classes_beside(target: str) -> Tuple[str, List[str]]:
    """The class list in a folder, or in the one above, and its names; empty where there is none that can be read."""
    folder = os.path.abspath(target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target)))
    for place in (folder, os.path.dirname(folder)):
        for name in LISTS:
            path = os.path.join(place, name)
            try:
                names = read_classes(path)
            except (OSError, ValueError):
                continue
            if names:
                return path, names
    return '', []


def scan_labelme(
    target: str,
    num_classes: Optional[int] = None,
    class_names: Optional[Sequence[str]] = None,
    images: Optional[str] = None,
    home: Optional[str] = None,
    look: bool = True,
) -> LabelFacts:
    """Reads the JSON of a folder. Never raises for what the files hold.

    Labels are positions in ``class_names``; objects of other names are in ``annotations.left_out``. Shapes of one label
    and ``group_id`` are one object, as in Labelme's own converters.

    Args:
        target (str): The folder, or one JSON.
        num_classes (int, optional): Classes of the head. Default: as many as there are names.
        class_names (sequence of str, optional): The classes; ``__ignore__`` and ``_background_`` are none. Default: the
            names that occur, in the order of the alphabet.
        images (str, optional): Folder of the images. Default: where ``imagePath`` leads.
        home (str, optional): Where the files lay when they were no copies. Default: where they are.
        look (bool): Whether images are looked for.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are JSON files.

    Raises:
        ValueError: There is not one shape, and nothing wrong.
    """
    faults = Faults()
    root, images_root = folder_of(target), os.path.abspath(images or folder_of(home or target))
    read: List[ShapeFile] = []
    for name in listed(target, faults) if os.path.isdir(target) else [os.path.basename(target)]:
        file = read_labelme(os.path.join(root, name), name, faults)
        if file is not None:
            image = _image_of(name, file.image, images is not None) if file.image else ''
            read.append(_sized(file._replace(image=image), images_root, name, faults if look else None))
    found = labels_of(read)
    if not found and not faults:
        raise ValueError(f'nothing was read: {len(read):,} JSON of Labelme without a shape')
    given = sorted(found) if class_names is None else class_names
    classes = list(dict.fromkeys(name for name in given if name not in NO_CLASS))
    looked_in = images_root if look else None
    within = around(images_root)
    return facts_of_shapes(read, target, classes, faults, num_classes, class_names is None, looked_in, within)


def folder_of(path: str) -> str:
    """A folder itself, or the folder that a file lies in."""
    return path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))


def listed(root: str, faults: Faults, ending: str = '.json') -> List[str]:
    """The files of an ending in a folder and those in it, relative to it."""
    names = []

    def refused(folder: str, error: OSError) -> None:
        faults.add(f'the folder cannot be read: {error.strerror or error}', folder)

    for folder, files, _ in walk(root, refused):
        names += [
            os.path.relpath(os.path.join(folder, name), root)
            for name in files
            if name.lower().endswith(ending) and not name.startswith('.')
        ]
    return sorted(names)


def _image_of(name: str, image: str, in_folder: bool) -> str:
    """The image of a file, relative to the root, or to the folder that the user names."""
    if in_folder:
        return os.path.basename(image.replace('\\', '/'))
    return os.path.normpath(os.path.join(os.path.dirname(name), image))


def around(root: str) -> str:
    """Return the folder that a data set may fill: of labels/train the images are in ../../images/train."""
    return os.path.dirname(os.path.dirname(root))


def _sized(file: ShapeFile, root: str, name: str, faults: Optional[Faults]) -> ShapeFile:
    """With the size of its image where the file does not say it; without the embedded image."""
    size = file.size
    if size is None and faults is not None:
        from PIL import Image

        try:
            if file.data:
                size = size_of_data(file.data)
            else:
                path = resolve_inside(root, file.image, around(root))
                if os.path.exists(path):
                    with open_regular(path) as image, Image.open(image) as opened:
                        height, width = shown_size(opened)
                    size = float(height), float(width)
        except Exception as error:  # a damaged file raises what it likes
            faults.add('cannot be read: the image, and the file has no size', f'{name}: {str(error)[:120]}')
    return file._replace(size=size, data='yes' if file.data else '')
