"""Which label file belongs to which image, and what a target of oriented boxes is."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Dict, Iterator, List, NamedTuple, Optional, Set

from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.labelme import LISTS
from mmguard.tools.scan.annotations.oriented.dota import is_dota_text
from mmguard.tools.scan.annotations.oriented.xml import HEAD_OF_FILE, format_of_xml
from mmguard.tools.scan.annotations.shape_target import ShapeTarget
from mmguard.tools.scan.sources.folders import files_in, is_folder, is_image_name, walk
from mmguard.tools.storage.files import open_regular

DOTA = 'dota'
#: Format -> how its files end.
ENDINGS = {'dota': '.txt', 'dior': '.xml', 'hrsc': '.xml'}
#: How folders of images are called, beside those of labels.
IMAGES = ('images', 'AllImages', 'JPEGImages', 'JPEGImages-trainval', 'JPEGImages-test')
#: Texts beside labels that hold none.
_NO_LABELS = frozenset((*LISTS, 'names.txt', 'notes.txt', *(f'{s}.txt' for s in ('train', 'val', 'test', 'trainval'))))
#: So many folders are looked into, names of each, and files opened, to tell what a target is.
_FOLDERS, _NAMES, _OPENED = 50, 5000, 20


class Labelled(NamedTuple):
    """A label file.

    Attributes:
        path (str): Where it is.
        name (str): How messages name it.
        image (str): Its image, relative to the folder of the images; empty: nobody knows where that is.
    """

    path: str
    name: str
    image: str


@dataclass
class Listing:
    """The label files and images of a data set.

    Args:
        files (list[Labelled]): The label files.
        bare (list[str]): Images without one.
        images (str, optional): The folder that images are relative to. Default: they are not looked for.
    """

    files: List[Labelled] = field(default_factory=list)
    bare: List[str] = field(default_factory=list)
    images: Optional[str] = None


def oriented_format(target: str) -> str:
    """``'dota'``, ``'dior'`` or ``'hrsc'`` of a file, or of at least half of those in a folder; empty: none of them."""
    known: List[str] = []
    for path in islice(_some_files(target), 10 * _OPENED):
        found = _format_of_file(path)
        known += [] if found is None else [found]
        if len(known) >= _OPENED:
            break
    most = max(ENDINGS, key=known.count)
    return most if known and 2 * known.count(most) >= len(known) else ''


def _some_files(target: str) -> Iterator[str]:
    """The texts and XML of a folder and those in it, the first ones; or the one file."""
    if os.path.isfile(target):
        yield target
        return
    waiting = [target]
    for _ in range(_FOLDERS):
        if not waiting:
            return
        folder = waiting.pop(0)
        try:
            with os.scandir(folder) as entries:  # of label maps a folder may hold a million
                some = sorted((entry.name, is_folder(entry)) for entry in islice(entries, _NAMES))
        except OSError:
            continue
        waiting += [os.path.join(folder, name) for name, below in some if below]
        yield from (os.path.join(folder, name) for name, below in some if not below and _is_label(name))


def _is_label(name: str) -> bool:
    low = name.lower()
    return low.endswith(('.txt', '.xml')) and name not in _NO_LABELS and not low.startswith(('readme', '.'))


def _format_of_file(path: str) -> Optional[str]:
    """The format of a file; empty: another one. ``None`` where it does not say."""
    if not _is_label(os.path.basename(path)):
        return ''
    try:
        with open_regular(path) as file:
            head = file.read(HEAD_OF_FILE)
    except (OSError, ValueError):
        return None
    if path.lower().endswith('.xml'):
        return format_of_xml(head)
    is_dota = is_dota_text(head)
    return None if is_dota is None else DOTA if is_dota else ''


def listed(target: str, faults: Faults, written: str) -> List[str]:
    """The label files in a folder and those in it, relative to it."""
    names: List[str] = []

    def refused(folder: str, error: OSError) -> None:
        faults.add(f'the folder cannot be read: {error.strerror or error}', folder)

    for folder, files, _ in walk(target, refused):
        own = [name for name in files if name.lower().endswith(ENDINGS[written]) and _is_label(name)]
        names += [os.path.relpath(os.path.join(folder, name), target) for name in own]
    return sorted(names)


def list_folder(target: ShapeTarget, written: str, faults: Faults) -> Listing:
    """What belongs to a folder of label files, or to one file.

    Args:
        target (ShapeTarget): The folder, or the file.
        written (str): The format.
        faults (Faults): Takes what cannot be listed.
    """
    home = os.path.abspath(target.home_root)
    by_folder: Dict[str, List[Labelled]] = {}
    read = target.read(partial(listed, written=written), lambda path, name, _: Labelled(path, name, ''), faults)
    for label in read:
        by_folder.setdefault(os.path.dirname(label.name), []).append(label)
    found = Listing()
    folders: Set[str] = set()
    for folder, labels in by_folder.items():
        places = [target.images] if target.images else _images_beside(os.path.join(home, folder))
        folders.update(places)
        there = {os.path.splitext(name)[0]: os.path.join(place, name) for place in places for name in _images_in(place)}
        endings = Counter(os.path.splitext(path)[1] for path in there.values()) or {'.png': 1}
        usual = max(endings, key=lambda ending: endings[ending])
        for label in labels:
            stem = os.path.splitext(os.path.basename(label.name))[0]
            path = there.pop(stem, os.path.join(places[0], stem + usual) if places else '')
            found.files.append(label._replace(image=path))
        found.bare += there.values() if os.path.isdir(target.path) else []
    if folders:
        found.images = target.images or os.path.commonpath([os.path.dirname(folder) for folder in folders])
        inside = [os.path.relpath(label.image, found.images) if label.image else '' for label in found.files]
        found.files = [label._replace(image=image) for label, image in zip(found.files, inside)]
        found.bare = [os.path.relpath(path, found.images) for path in found.bare]
    return found


def _images_beside(folder: str) -> List[str]:
    """The folders of images that belong to a folder of labels."""
    if _images_in(folder):
        return [folder]
    parent = os.path.dirname(os.path.abspath(folder))
    for place in (parent, os.path.dirname(parent)):
        found = [os.path.join(place, name) for name in IMAGES if os.path.isdir(os.path.join(place, name))]
        if found:
            return found
    return []


def _images_in(folder: str) -> List[str]:
    return [name for name in files_in(folder).names if is_image_name(name)]
