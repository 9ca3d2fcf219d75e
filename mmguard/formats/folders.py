"""Format of image classification: folders of images, each named after its class."""

from __future__ import annotations

import os
import re
from functools import partial
from typing import Dict, List, Optional, Sequence

from mmguard.facts.labels import AnnotationFacts, BoxFacts, ConfigFacts, LabelFacts
from mmguard.files.images import open_image
from mmguard.files.regular import open_regular
from mmguard.formats.faults import Faults
from mmguard.formats.files import SPLIT_FOLDERS, is_image_name, list_folders, list_names, read_head, walk
from mmguard.formats.format import CannotScan, Format, LabelSet, Sets
from mmguard.formats.options import ScanOptions, is_left_out
from mmguard.formats.table import EXAMPLES
from mmguard.labels.instances import LABEL_REASON

_FOLDER_NAMES_NOTE = (
    "each folder is a class; its label is its index among the sorted folder names, as in torchvision's ImageFolder"
)


class ClassFolders(Format):
    """A folder whose subfolders are the classes, or one such folder per split."""

    name = 'images'

    def detect(self, target: str) -> bool:
        return bool(find_class_splits(target))

    def sets(self, target: str, options: ScanOptions) -> Sets:
        folders = find_class_splits(target)
        boxes = next(filter(None, map(find_box_file, folders.values())), '')
        if boxes:
            raise CannotScan(
                f'{target}: {boxes} holds boxes of an image, so the folders are not image classes. For YOLO, pass the '
                f'data.yaml. ultralytics expects label files in labels/ if the images are in images/, else next to the '
                f'images; each row is a class number and 4 fractions, `0 0.5 0.5 0.1 0.1`'
            )
        ending = next(filter(None, map(find_mask_ending, folders.values())), '')
        if ending:
            raise CannotScan(
                f'{target}: many images have a mask next to them, with the name ending {ending}, so the folders are '
                f'not image classes. Scan the masks: `mmguard scan {target} --suffix={ending} --num-classes N`'
            )
        train = next(iter(folders.values()), '')
        sets = Sets([], ConfigFacts())
        for split, folder in folders.items():
            if not is_left_out(split, options):
                read = partial(scan_class_folder, folder, options.num_classes, options.classes, train)
                sets.sources.append(LabelSet(split or target, read, [_FOLDER_NAMES_NOTE]))
        if not sets.sources:
            raise CannotScan(f'{target} has no labels of {", ".join(options.splits)}')
        return sets


#: Names of folders of other kinds of data sets, which are never class names.
NO_CLASSES = {
    'images', 'image', 'imgs', 'img', 'labels', 'label', 'masks', 'mask', 'annotations', 'annotation', 'ann_dir',
    'img_dir', 'jpegimages', 'segmentationclass', 'segmentationobject', 'gtfine', 'leftimg8bit', 'gt', 'ground_truth',
    'semantic', 'instance', 'depth', 'rgb', 'image_2', 'label_2', 'img1', 'trainannot', 'valannot', 'testannot',
}  # fmt: skip
#: Folders of images whose labels are in another folder; their subfolders are cities or videos.
_LABELLED_ELSEWHERE = {'leftimg8bit', 'img_dir', 'jpegimages'}
#: Maximum numbers of inspected classes and of names in each; number of colors that only photographs exceed.
_CLASSES, _NAMES, _COLORS = 5, 200, 256
#: Number of images of a class to open: a single one may be damaged.
_LOOKED_AT = 3

#: First row of boxes: a class, a number or a name, and at least four numbers.
_BOX_ROW = re.compile(rb'\s*\S+([ ,]+-?[\d.]+(e-?\d+)?){4,}\s*(\n|$)')


def find_class_splits(target: str) -> Dict[str, str]:
    """Return {split: folder} of the folders that contain class folders, training first, or {} if none is found.

    Without splits, the result is {'': target}.
    """
    path = os.path.abspath(target)
    if not os.path.isdir(path) or _LABELLED_ELSEWHERE.intersection(path.lower().split(os.sep)):
        return {}
    names = _list_folders(target)
    splits = [name for name in SPLIT_FOLDERS if name in names]
    if not splits:
        return {'': target} if _is_of_classes(target, names) else {}
    found = {split: os.path.join(target, split) for split in splits}
    return found if all(_is_of_classes(folder, _list_folders(folder)) for folder in found.values()) else {}


def _list_folders(folder: str, hidden: bool = False) -> List[str]:
    return [name for name in list_folders(folder) if hidden or name[0] != '.']


def _is_of_classes(folder: str, names: Sequence[str]) -> bool:
    """Return True if two subfolders in ``names`` hold images, mostly photographs, and ``folder`` holds no images."""
    if len(names) < 2 or any(name.lower() in NO_CLASSES for name in names) or _list_images(folder):
        return False
    some = [images for images in map(_list_images, (os.path.join(folder, name) for name in names[:_CLASSES])) if images]
    looked_at = [image for images in some for image in images[:_LOOKED_AT]]
    return len(some) > 1 and 2 * sum(map(_is_photo, looked_at)) > len(looked_at)


def find_box_file(folder: str) -> str:
    """Return the path of a text file of boxes that is named like an image of a class folder, or '' if not found.

    The text file is next to the image, or in a subfolder.
    """
    for place in (os.path.join(folder, name) for name in _list_folders(folder)[:_CLASSES]):
        stems = {os.path.basename(image).rpartition('.')[0] for image in _list_images(place)}
        for below in (place, *(os.path.join(place, name) for name in _list_folders(place))):
            names = [name for name in list_names(below, _NAMES) if name.endswith('.txt')]
            texts = [os.path.join(below, name) for name in names if name[:-4] in stems]
            found = next((text for text in texts[:_LOOKED_AT] if _BOX_ROW.match(read_head(text, 1 << 12))), '')
            if found:
                return found
    return ''


def find_mask_ending(folder: str) -> str:
    """Return the common name ending of images that are named after another image next to them, as masks are.

    Return '' if fewer than a third of the images have the ending, or if these are photographs (cat_flipped.png).

    Example:
        The ending is '_mask.tif' for the images a_1.tif, a_1_mask.tif, b.tif and b_mask.tif.
    """
    images = 0
    named: Dict[str, List[str]] = {}
    for place in (os.path.join(folder, name) for name in _list_folders(folder)[:_CLASSES]):
        names = [os.path.basename(image) for image in _list_images(place)]
        stems = {name.rpartition('.')[0] for name in names}
        images += len(names)
        # An ending begins with a letter, so that numbers are not taken for endings (a_1.png, a_10.png).
        parts = (re.match(r'(.+?)([_-][a-z][a-z_-]*\.\w+)$', name, re.IGNORECASE) for name in names)
        for found in parts:
            if found and found.group(1) in stems:
                named.setdefault(found.group(2), []).append(os.path.join(place, found.group(0)))
    ending, masks = max(named.items(), key=lambda one: len(one[1]), default=('', []))
    return ending if 3 * len(masks) >= images > 0 and not any(map(_is_photo, masks[:_LOOKED_AT])) else ''


def _list_images(folder: str) -> List[str]:
    """Return the paths of the images among the first ``_NAMES`` names of a folder."""
    return [os.path.join(folder, name) for name in list_names(folder, _NAMES) if is_image_name(name)]


def _is_photo(path: str) -> bool:
    """Return True if an image is a photograph, not a label map: it has more colors than a data set has classes."""
    try:
        with open_regular(path) as file, open_image(file, decodes=True) as opened:
            return opened.mode in ('RGB', 'CMYK') and opened.getcolors(_COLORS) is None
    except Exception:  # decoders raise many types for a damaged file
        return False


def scan_class_folder(
    folder: str, num_classes: Optional[int] = None, class_names: Optional[Sequence[str]] = None, of_train: str = ''
) -> LabelFacts:
    """Count the images of each class without opening an image.

    Record a fault if the class folders differ from ``class_names``, or without it, from those in ``of_train``.

    Returns:
        LabelFacts: ``kind='instances'``: an image counts as an instance.
    """
    faults = Faults()
    names = _list_folders(folder, hidden=True)  # the listing of mmengine and torchvision
    for name in names:
        if name.startswith('.'):
            faults.add('a hidden folder is numbered among the classes', f'{folder}: {name}')
    meant = list(class_names or (_list_folders(of_train, hidden=True) if of_train else names))
    if names != meant:
        lacks, more = (', '.join(sorted(set(a) - set(b))[:5]) for a, b in ((meant, names), (names, meant)))
        words = [f'lacks {lacks}'] * bool(lacks) + [f'has {more}, too'] * bool(more) or ['has another order']
        faults.add('the class folders differ from the class list', f'{folder}: {" and ".join(words)}')
    elif num_classes is not None and len(names) < num_classes:
        faults.add('there are fewer class folders than classes', f'{folder}: {len(names)} of {num_classes}')
    classes = num_classes or len(names) or 1
    histogram: Dict[int, int] = {}
    offending: List[str] = []
    for label, name in enumerate(names):
        of_class = _list_images_below(os.path.join(folder, name), faults)
        if of_class:
            histogram[label] = len(of_class)
        if label >= classes:
            offending += [f'{name}/{one}: {label}' for one in of_class]
    values = {label: count for label, count in histogram.items() if label >= classes}
    total = sum(histogram.values())
    annotations = AnnotationFacts(
        format='images',
        names_from='',
        categories=dict(enumerate(names)),
        instances_of={name: histogram.get(label, 0) for label, name in enumerate(names)},
        images=total,
        annotations=total,
        files_with_class=dict(histogram),
        usable={label: count for label, count in histogram.items() if label not in values},
        sources=[folder],
        labelled_by='class list',
        classes_counted=not (num_classes or names),
        unreadable=faults.to_dict(),
    )
    return LabelFacts(
        values=values,
        num_classes=classes,
        total=total,
        files=total,
        offending_files=len(offending),
        kind='instances',
        reasons={LABEL_REASON: len(offending)} if offending else {},
        class_names=names,
        histogram=histogram,
        annotations=annotations,
        boxes=BoxFacts(box_examples={LABEL_REASON: offending[:EXAMPLES]} if offending else {}),
    )


def _list_images_below(root: str, faults: Faults) -> List[str]:
    """Return the paths of the images in a folder and its subfolders, relative to the folder."""

    def add_fault(folder: str, error: OSError) -> None:
        faults.add(f'the folder cannot be read: {error.strerror or error}', folder)

    found = [os.path.join(folder, name) for folder, names in walk(root, add_fault) for name in names]
    return sorted(os.path.relpath(path, root) for path in found if is_image_name(os.path.basename(path)))
