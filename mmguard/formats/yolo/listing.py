"""Pairs of label files and images. As in ultralytics, ``labels`` replaces the last ``images`` in an image's path."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

from mmguard.files.containment import OUTSIDE_REASON, OutsideError, check_name
from mmguard.formats.faults import Examples, Faults
from mmguard.formats.files import FILES, is_image_name, list_folders, list_names, walk
from mmguard.formats.yolo.data_yaml import NAME_LISTS

#: Names of text files that may be next to label files but have no labels.
_NO_LABELS = frozenset((*NAME_LISTS, *(f'{split}.txt' for split in ('train', 'val', 'valid', 'test')), 'notes.txt'))
_LARGEST_LIST = 1 << 28
#: Maximum number of entries of a folder that are searched for nearby folders.
_NEAR = 200


class TextItem(NamedTuple):
    """A label file to read, and its image."""

    number: int  #: Index in the data set.
    path: str  #: Path of the label file; empty if the image has no label file.
    image: str  #: Path of the image; empty if unknown.


@dataclass
class YoloListing:
    """The label files and images of a data set."""

    texts: List[Tuple[str, str]] = field(default_factory=list)  #: Label file, and its image (empty if unknown).
    bare: List[str] = field(default_factory=list)  #: Images without a label file.
    without_image: Examples = field(default_factory=Examples)  #: Label files without an image.
    faults: Faults = field(default_factory=Faults)  #: Folders and lists that could not be read.
    missing: List[str] = field(default_factory=list)  #: Images that are listed but not on disk.
    images: int = 0  #: Number of images.
    #: Folder of images without label files -> (folder of their label files, where ultralytics does not look, number).
    elsewhere: Dict[str, Tuple[str, int]] = field(default_factory=dict)

    def items(self) -> Iterator[TextItem]:
        """Yield an item per label file, and then an item per image without a label file."""
        number = -1
        for number, (text, image) in enumerate(self.texts):
            yield TextItem(number, text, image)
        for place, image in enumerate(self.bare, number + 1):
            yield TextItem(place, '', image)


def list_images(places: Sequence[str]) -> YoloListing:
    """List the images of ``places`` (folders of images, or image lists .txt), with their label files."""
    listing = YoloListing()
    for place in places:
        if os.path.isdir(place):
            for folder, names in walk(place, lambda at, error: listing.faults.add(_describe_error(error), at)):
                images = [name for name in names if is_image_name(name)]
                texts = get_label_folder(folder)
                if images or texts != folder:
                    _match_images(listing, folder, images, texts, list_names(texts))
        else:
            _list_file(listing, place)
    _find_elsewhere(listing)
    return listing


def _find_elsewhere(listing: YoloListing) -> None:
    """Search nearby folders, where ultralytics does not look, for missing label files. Record them in ``elsewhere``."""
    wanted: Dict[str, Set[str]] = {}
    for folder, name in map(os.path.split, listing.bare):
        wanted.setdefault(folder, set()).add(f'{name.rpartition(".")[0]}.txt')
    for folder, names in wanted.items():
        around, last = os.path.split(folder)
        beside = os.path.join(os.path.dirname(around), 'labels', last)
        usual = [folder, os.path.join(around, 'labels'), beside, os.path.join(folder, 'labels')]
        for place in dict.fromkeys((*usual, *_find_near_folders(folder))):
            number = len(names & set(list_names(place))) if place != get_label_folder(folder) else 0
            if number:
                listing.elsewhere[folder] = (place, number)
                break


def _find_near_folders(folder: str) -> Iterator[str]:
    """Yield the subfolders and siblings of a folder, and the folders with its name in the siblings of its parent."""
    around, last = os.path.split(folder)
    for parent, below in ((folder, ''), (around, ''), (os.path.dirname(around), last)):
        for name in list_folders(parent, _NEAR):
            yield os.path.join(parent, name, below) if below else os.path.join(parent, name)


def match_label_files(root: str, images: Optional[str] = None) -> YoloListing:
    """Match the label files in a folder and its subfolders with their images.

    Args:
        images (str, optional): Folder of the images, with the same subfolders as ``root``.
    """
    listing = YoloListing()
    if not os.path.isdir(root):
        listing.texts.append((root, ''))
        return listing
    visited = set()
    others = []
    for folder, names in walk(root, lambda at, error: listing.faults.add(_describe_error(error), at)):
        if _select_texts(names, set()):
            beside = folder if any(map(is_image_name, names)) else replace_folder(folder, 'labels', 'images')
            if images is not None:
                beside = os.path.normpath(os.path.join(images, os.path.relpath(folder, root)))
            found = names if beside == folder else list_names(beside)
            known = [name for name in found if is_image_name(name)]
            if known or (beside != folder and os.path.isdir(beside)):
                _match_images(listing, beside, known, folder, names)
            else:  # the folder of the images is unknown
                listing.texts += [(os.path.join(folder, name), '') for name in sorted(_select_texts(names, set()))]
            visited.add(beside)
        elif any(map(is_image_name, names)) and get_label_folder(folder) != folder:
            others.append((folder, [name for name in names if is_image_name(name)]))
    for folder, names in others:
        if folder not in visited:
            _match_images(listing, folder, names, get_label_folder(folder), [])
    return listing


def get_label_folder(folder: str) -> str:
    """Return the folder where ultralytics looks for the label files of the images in a folder."""
    return replace_folder(folder, 'images', 'labels')


def replace_folder(folder: str, old: str, new: str) -> str:
    """Replace the last folder called ``old`` in a path by ``new``."""
    parts = folder.split(os.sep)
    if old not in parts:
        return folder
    place = len(parts) - 1 - parts[::-1].index(old)
    return os.sep.join([*parts[:place], new, *parts[place + 1 :]])


def _match_images(listing: YoloListing, folder: str, images: Sequence[str], texts: str, names: Sequence[str]) -> None:
    """Add to ``listing`` the images of a folder, their label files, and label files without an image."""
    stem_of = {name.rpartition('.')[0]: name for name in images}
    there = _select_texts(names, set(stem_of))
    for name in images:
        text = f'{name.rpartition(".")[0]}.txt'
        if text in there:
            listing.texts.append((os.path.join(texts, text), os.path.join(folder, name)))
        else:
            listing.bare.append(os.path.join(folder, name))
    listing.images += len(images)
    for text in sorted(name for name in there if name[:-4] not in stem_of):
        listing.texts.append((os.path.join(texts, text), ''))
        listing.without_image.add(os.path.join(texts, text))


def _select_texts(names: Sequence[str], stems: set) -> set:
    """Return the .txt names that are label files: those of an image (``stems``), and others unlike lists or notes."""
    return {
        name
        for name in names
        if name.endswith('.txt')
        and (name[:-4] in stems or not (name in _NO_LABELS or name.lower().startswith('readme') or name[0] == '.'))
    }


def _list_file(listing: YoloListing, path: str) -> None:
    """Add the images of an image list to ``listing``. As in ultralytics, ``./`` means the folder of the list."""
    try:
        with FILES.open(path) as file:
            lines = file.read(_LARGEST_LIST).decode('utf-8').splitlines()
    except UnicodeDecodeError:
        listing.faults.add('the list of images is not UTF-8', path)
        return
    except (OSError, ValueError) as error:
        listing.faults.add(f'the list of images cannot be read: {getattr(error, "strerror", None) or error}', path)
        return
    by_folder: Dict[str, List[str]] = {}
    beside = os.path.dirname(os.path.abspath(path))
    for line in lines:
        image = line.strip()
        if is_image_name(os.path.basename(image)):
            try:
                check_name(image)
            except OutsideError:
                listing.missing.append(f'{image} ({OUTSIDE_REASON})')
                continue
            folder, name = os.path.split(image)
            by_folder.setdefault(folder, []).append(name)
    for folder, names in by_folder.items():
        # A folder may be relative to the working directory, or just as often to the folder of the list.
        places = [folder] * (not folder.startswith('.')) + [os.path.join(beside, folder)]
        at = os.path.normpath(next(filter(os.path.isdir, places), places[-1]))
        there = set(list_names(at))
        listed = [name for name in dict.fromkeys(names) if name in there]
        listing.missing += [os.path.join(at, name) for name in names if name not in there]
        texts = get_label_folder(at)
        stems = {name.rpartition('.')[0] for name in listed}
        # In a folder split by lists, the other label files belong to another list.
        _match_images(listing, at, listed, texts, [name for name in list_names(texts) if name[:-4] in stems])


def _describe_error(error: OSError) -> str:
    return f'the folder cannot be read: {error.strerror or error}'
