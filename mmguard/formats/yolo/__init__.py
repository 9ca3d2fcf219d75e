"""YOLO labels: a label file per image, with a row per object and coordinates as fractions of the image."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Callable, List, Optional, Sequence, Set, Tuple

from mmguard.facts.labels import LabelFacts
from mmguard.formats.files import is_image_name, is_in_images, read_head, walk
from mmguard.formats.format import (
    CannotCorrect,
    CannotScan,
    Corrected,
    Format,
    LabelFiles,
    LabelSet,
    Mapper,
    Sets,
    get_ending,
    keep_file,
    list_names_below,
    scan_here,
)
from mmguard.formats.maps.sources import FolderSource
from mmguard.formats.options import SPLITS, FixOptions, ScanOptions, as_pairs, build_settings
from mmguard.formats.unsupported_formats import looks_like_yolo
from mmguard.formats.yolo.data_yaml import (
    DataYaml,
    declares_names,
    find_data_yaml,
    find_names,
    find_unread,
    is_data_yaml,
    read_data_yaml,
)
from mmguard.formats.yolo.listing import YoloListing, list_images, match_label_files, replace_folder
from mmguard.formats.yolo.rows import correct_data_yaml, correct_text
from mmguard.language import Message


class Yolo(Format):
    """The YOLO format: a data.yaml, a folder of label files, a single label file, or a list of images."""

    name = 'yolo'
    endings = ('.yaml', '.yml', '.txt')
    beside_suffix = True

    def detect(self, target: str) -> bool:
        return is_yolo(target)

    def sets(self, target: str, options: ScanOptions) -> Sets:
        sets = Sets([])
        for found in find_yolo_sets(target, options.splits, options.images):
            absent = [place for place in found.places or () if not os.path.exists(place)]
            if absent and found.name != 'test':  # the test images of a challenge may be missing
                sets.failed.append(f'{found.name}: {absent[0]}, named in {found.declared.file}, does not exist')
            if not absent and found.declared.masks_dir:
                _add_maps(sets, found, options)
            elif not absent:
                read = partial(found.read, options.num_classes)
                sets.sources.append(LabelSet(found.name, read, found.notes, by_tasks=True))
        if not sets.sources:
            raise CannotScan('; '.join(sets.failed) or f'{target} has no labels of {", ".join(options.splits)}')
        return sets

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        is_folder = os.path.isdir(target)
        if target.lower().endswith('.txt') and not is_folder:
            raise CannotCorrect(f'{target}: to correct YOLO label files, pass their folder or its data.yaml')
        sets = find_yolo_sets(target)
        masks = sets[0].declared.masks_dir if sets else ''
        if masks:
            raise CannotCorrect(f'the labels of {target} are label maps: pass their folder {masks}')
        root = _find_root(sets[0], target if is_folder else os.path.dirname(target) or os.curdir)
        texts, others = _list_dataset_files(sets, target, root)
        names = texts | others
        if any(one.places is None for one in sets):
            names = {*list_names_below(root)}
            texts &= names
        elif is_folder:
            target = sets[0].declared.file
        if not texts:
            raise CannotCorrect(f'no label file was found for {target}')
        places = {name: os.path.join(root, name) for name in sorted(names)}
        if os.path.isfile(target):
            places[os.path.basename(target)] = target
        own = {name for name, place in places.items() if name in texts or is_data_yaml(place)}

        def correct(data: bytes, name: str) -> Corrected:
            if name in texts:
                return correct_text(data, options, sets[0].declared)
            return correct_data_yaml(data, get_ending(name)) if name in own else keep_file(data, name)

        files = [(place, name) for name, place in places.items()]
        return LabelFiles(files, correct, frozenset({*places} - own), None, frozenset(own - texts), root)


#: Maximum numbers of folders and of text files that are inspected to recognize a folder of labels.
_FOLDERS, _FILES = 50, 200


@dataclass
class YoloSet:
    """A YOLO data set whose label files have not been read yet."""

    name: str  #: Name of the split, or the target.
    target: str  #: Folder, data.yaml, list of images or label file, as given.
    root: str  #: Folder that file names are relative to.
    declared: DataYaml  #: Names, number of classes and keypoints of its data.yaml.
    places: Optional[List[str]] = None  #: Folders and lists of images; ``None`` if the root is searched.
    images: Optional[str] = None  #: Folder of the images, if given by the user.
    notes: List[str] = field(default_factory=list)  #: Notes for the user.

    def list_files(self) -> YoloListing:
        listing = match_label_files(self.root, self.images) if self.places is None else list_images(self.places)
        for path, why in find_unread(self.root).items():
            listing.faults.add(f'cannot be read: {why}', os.path.relpath(path, self.root))
        return listing

    def read(
        self,
        num_classes: Optional[int] = None,
        mapper: Mapper = scan_here,
        on_files: Callable[[int], None] = lambda files: None,
    ) -> LabelFacts:
        """Read the label files of this data set, see :func:`scan_texts`."""
        from mmguard.formats.yolo.read import scan_texts

        root = self.root if os.path.isdir(self.root) else os.path.dirname(self.root)
        facts = scan_texts(self.list_files(), self.declared, root, num_classes, mapper, on_files)
        assert facts.annotations is not None
        facts.annotations.sources = [self.target]
        return facts


def _add_maps(sets: Sets, found: YoloSet, options: ScanOptions) -> None:
    """Add the label maps of a split to ``sets``. Their classes are those of ``options``, or else of the data.yaml."""
    declared, places = found.declared, found.places or []
    given = replace(
        options,
        # With one class, ultralytics trains the values 0 and 1.
        num_classes=options.num_classes or max(2, declared.num_classes or 256),
        label_map=options.label_map or as_pairs(declared.label_mapping),
    )
    faults = [f'{declared.file}: {fault}' for fault in declared.faults]
    sets.failed += [fault for fault in faults if fault not in sets.failed]
    for place in places:
        folder = replace_folder(place, 'images', declared.masks_dir)
        if not os.path.isdir(place) or not os.path.isdir(folder) or folder == place:
            why = 'not a folder of images' if not os.path.isdir(place) else f'its label maps are not in {folder}'
            sets.failed.append(f'{found.name}: {place}: {why}')
            continue
        source = FolderSource(folder, build_settings(given), place, given.suffix or '.png')
        source.name = found.name if len(places) == 1 else f'{found.name}: {place}'
        source.class_names = declared.names
        source.notes.append(Message('label maps of YOLO, declared in {file}', file=declared.file))
        sets.sources.append(source)


def is_yolo(target: str) -> bool:
    """Return True if a target is a data.yaml, an image list, a label file, or a folder with a data.yaml or labels."""
    if os.path.isdir(target):
        return bool(find_data_yaml(target)) or _has_texts(os.path.abspath(target))
    root = os.path.abspath(target)
    if is_data_yaml(target) or (declares_names(target) and _has_texts(os.path.dirname(root))):
        return True
    return target.lower().endswith('.txt') and (_lists_images(root) or looks_like_yolo([root]))


def find_yolo_sets(target: str, splits: Sequence[str] = SPLITS, images: Optional[str] = None) -> List[YoloSet]:
    """Return the data sets of a YOLO target. The list is empty if its data.yaml lists no images of ``splits``."""
    is_folder = os.path.isdir(target)
    file = find_data_yaml(target) if is_folder else target if is_data_yaml(target) else ''
    if file:
        return _list_declared(target, read_data_yaml(file), splits)
    root = os.path.abspath(target)
    folder = root if is_folder else os.path.dirname(root)
    if not is_folder and declares_names(target):
        found = YoloSet(target, target, folder, read_data_yaml(target))
    else:
        places = [root] if not is_folder and _lists_images(root) else None
        found = YoloSet(target, target, folder if places else root, find_names(folder), places)
    if images is not None and found.root == folder and found.places is None:
        found.images = os.path.abspath(images)
    note = Message('YOLO labels without names: every class id counts as a class unless --num-classes is given')
    if found.declared.file:
        note = Message('YOLO labels, with names from {file}', file=found.declared.file)
    found.notes.append(note)
    return [found]


def _list_declared(target: str, declared: DataYaml, splits: Sequence[str]) -> List[YoloSet]:
    found: List[YoloSet] = []
    for split in splits:
        places = [_resolve_place(declared, path) for path in declared.splits.get(split, [])]
        same = next((one for one in found if places and one.places == places), None)
        if same is not None:
            same.name += f', {split}'
        elif places:
            found.append(YoloSet(split, target, declared.root, declared, places))
    for one in found[:1]:
        one.notes.append(Message('YOLO labels, declared in {file}', file=declared.file))
    return found


def _resolve_place(declared: DataYaml, path: str) -> str:
    """Return the path of a folder or list of images. Like ultralytics, drop ``../`` if the path does not exist."""
    roots = (declared.root, os.path.dirname(os.path.abspath(declared.file)))
    ways = [path, path[3:]] if path.startswith('../') else [path]
    places = [os.path.abspath(os.path.join(root, way)) for root in roots for way in ways]
    return next(filter(os.path.exists, places), places[0])


def _has_texts(root: str) -> bool:
    """Return True if a folder contains label files with rows, and no images that may be label maps."""
    texts: List[str] = []
    for number, (folder, names) in enumerate(walk(root, lambda at, error: None)):
        beside = {name.rpartition('.')[0] for name in names if is_image_name(name)}
        here = [name for name in names if name.endswith('.txt')]
        paired = [name for name in here if name[:-4] in beside]
        if beside and not paired and not is_in_images(folder, root):
            return False  # probably label maps
        texts += [os.path.join(folder, name) for name in (paired or here)[: _FILES - len(texts)]]
        if number >= _FOLDERS or len(texts) >= _FILES:
            break
    return bool(texts) and looks_like_yolo(texts)


def _lists_images(path: str) -> bool:
    lines = read_head(path, 1 << 14).decode('utf-8', 'replace').splitlines()
    return any(is_image_name(os.path.basename(line.strip())) for line in lines[:20])


def _find_root(yolo_set: YoloSet, folder: str) -> str:
    """Return the folder to which paths in the data.yaml are relative if it is inside ``folder``, else ``folder``."""
    inside = yolo_set.declared.root.startswith(os.path.join(os.path.abspath(folder), ''))
    return yolo_set.declared.root if inside else folder


def _list_dataset_files(sets: Sequence[YoloSet], target: str, root: str) -> Tuple[Set[str], Set[str]]:
    """Return two sets of paths below ``root``: the label files of the data sets, and their images and image lists."""
    texts: Set[str] = set()
    others: Set[str] = set()
    folder = os.path.join(os.path.abspath(root), '')
    for one in sets:
        others.update(filter(os.path.isfile, one.places or ()))
        for _, text, image in one.list_files().items():
            if text and not text.startswith(folder):
                raise CannotCorrect(f'{text}, a label file of {target}, is outside of {root}')
            texts.add(text)
            others.add(image)
    inside, near = ({path[len(folder) :] for path in paths if path.startswith(folder)} for paths in (texts, others))
    return inside, near
