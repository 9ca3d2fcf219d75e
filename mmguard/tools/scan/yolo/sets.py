"""The YOLO data sets that a target names."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Callable, List, Optional, Sequence

from mmguard.findings.facts import LabelFacts
from mmguard.tools.scan.engine import Mapper, scan_here
from mmguard.tools.scan.settings import SPLITS
from mmguard.tools.scan.sources.folders import is_image_name, walk
from mmguard.tools.scan.sources.other_files import looks_like_yolo
from mmguard.tools.scan.yolo.declared import (
    Declared,
    data_yaml_in,
    declares_names,
    is_data_yaml,
    names_beside,
    read_data_yaml,
    unopened_beside,
)
from mmguard.tools.scan.yolo.listing import Listing, list_images, list_texts
from mmguard.tools.scan.yolo.scan import scan_texts
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import absolute, below, is_url, joined

#: So many folders, and files of each, are looked at before a target is said to be none.
_FOLDERS, _FILES = 50, 200
#: Behind a URL: listings of that many are kept.
_FAR_FOLDERS = 8


@dataclass
class YoloSet:
    """One data set."""

    name: str  #: A split, or what the user named.
    target: str  #: What the user named: a folder, a data.yaml, a list of images or a label file.
    root: str  #: Files are named relative to it.
    declared: Declared  #: Names, number of classes, keypoints.
    places: Optional[List[str]] = None  #: Folders and lists of images. ``None``: what lies in the root.
    images: Optional[str] = None  #: Folder of the images, where the user said so.
    notes: List[str] = field(default_factory=list)  #: What the user should know of it.

    def listing(self) -> Listing:
        listing = list_texts(self.root, self.images) if self.places is None else list_images(self.places)
        for path in unopened_beside(self.root):
            listing.faults.add('cannot be read: it is no regular file', below(path, self.root))
        return listing

    def read(
        self,
        num_classes: Optional[int] = None,
        mapper: Mapper = scan_here,
        on_files: Callable[[int], None] = lambda files: None,
    ) -> LabelFacts:
        """Reads it, see :func:`scan_texts`."""
        root = self.root if FILES.is_folder(self.root) else os.path.dirname(self.root)
        facts = scan_texts(self.listing(), self.declared, root, num_classes, mapper, on_files)
        assert facts.annotations is not None
        facts.annotations.sources = [self.target]
        return facts


def is_yolo(target: str) -> bool:
    """Whether a target is a data.yaml, a list of images, a label file, or a folder with the first or the last."""
    if FILES.is_folder(target):
        return bool(data_yaml_in(target)) or _has_texts(absolute(target))
    root = absolute(target)
    if is_data_yaml(target) or (declares_names(target) and _has_texts(os.path.dirname(root))):
        return True
    return target.lower().endswith('.txt') and (_lists_images(root) or looks_like_yolo([root]))


def yolo_sets(target: str, splits: Sequence[str] = SPLITS, images: Optional[str] = None) -> List[YoloSet]:
    """Return the data sets of a YOLO target; none where its data.yaml names no images of these splits."""
    is_folder = FILES.is_folder(target)
    file = data_yaml_in(target) if is_folder else target if is_data_yaml(target) else ''
    if file:
        return _declared_sets(target, read_data_yaml(file), splits)
    root = absolute(target)
    if is_folder:
        return [_bare_set(target, root, names_beside(root), images)]
    folder = os.path.dirname(root)
    if declares_names(target):
        return [_bare_set(target, folder, read_data_yaml(target), images)]
    if _lists_images(root):
        return [_with_note(YoloSet(target, target, folder, names_beside(folder), [root]))]
    return [_bare_set(target, root, names_beside(folder), None)]


def _bare_set(target: str, root: str, declared: Declared, images: Optional[str]) -> YoloSet:
    return _with_note(YoloSet(target, target, root, declared, None, None if images is None else absolute(images)))


def _with_note(found: YoloSet) -> YoloSet:
    if found.declared.file:
        found.notes.append(f'YOLO labels, names: {found.declared.file}')
    else:
        found.notes.append('YOLO labels without names: every class id counts as a class, but for --num-classes')
    return found


def _declared_sets(target: str, declared: Declared, splits: Sequence[str]) -> List[YoloSet]:
    found: List[YoloSet] = []
    for split in splits:
        places = [_place(declared, path) for path in declared.splits.get(split, [])]
        same = next((one for one in found if places and one.places == places), None)
        if same is not None:
            same.name += f', {split}'
        elif places:
            found.append(YoloSet(split, target, declared.root, declared, places))
    for one in found[:1]:
        one.notes.append(f'YOLO labels, as {declared.file} says')
    return found


def _place(declared: Declared, path: str) -> str:
    """Where a folder or list of images lies; as ultralytics does, ``../`` is left out where it leads to nothing."""
    roots = (declared.root, os.path.dirname(absolute(declared.file)))
    ways = [path, path[3:]] if path.startswith('../') else [path]
    places = [absolute(joined(root, way)) for root in roots for way in ways]
    return next(filter(FILES.exists, places), places[0])


def _has_texts(root: str) -> bool:
    """Whether label files of rows lie in a folder, and no other labels."""
    texts: List[str] = []
    for number, (folder, names, _) in enumerate(walk(root, lambda at, error: None)):
        beside = {name.rpartition('.')[0] for name in names if is_image_name(name)}
        here = [name for name in names if name.endswith('.txt')]
        paired = [name for name in here if name[:-4] in beside]
        if beside and not paired and 'images' not in below(folder, root).replace(os.sep, '/').split('/'):
            return False  # label maps, as far as anybody can tell
        texts += [joined(folder, name) for name in (paired or here)[: _FILES - len(texts)]]
        if number >= (_FAR_FOLDERS if is_url(root) else _FOLDERS) or len(texts) >= _FILES:
            break
    return bool(texts) and looks_like_yolo(texts)


def _lists_images(path: str) -> bool:
    try:
        with FILES.open(path) as file:
            lines = file.read(1 << 14).decode('utf-8', 'replace').splitlines()
    except (OSError, ValueError):
        return False
    return any(is_image_name(os.path.basename(line.strip())) for line in lines[:20])
