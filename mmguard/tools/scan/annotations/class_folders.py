"""Folders whose names are the labels of the images in them: ``train/cat/1.jpg``.

mmpretrain's ``CustomDataset`` and ``ImageNet`` without ``ann_file`` and torchvision's ``ImageFolder`` read them alike:
a label is the place of its folder among the sorted names, in each split anew.
"""

from __future__ import annotations

import os
from typing import Dict, List, Optional, Sequence

from mmguard.files.regular import open_regular
from mmguard.findings.facts import LabelFacts
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.image_labels import Labelled, facts_of_images
from mmguard.tools.scan.annotations.labelme import listed
from mmguard.tools.scan.sources.folders import is_image_name

#: How splits are called.
SPLITS = ('train', 'training', 'val', 'valid', 'validation', 'test', 'testing', 'dev')
#: How no class is called: parts of data sets of other kinds.
NO_CLASSES = {
    'images', 'image', 'imgs', 'img', 'labels', 'label', 'masks', 'mask', 'annotations', 'annotation', 'ann_dir',
    'img_dir', 'jpegimages', 'segmentationclass', 'segmentationobject', 'gtfine', 'leftimg8bit', 'gt', 'ground_truth',
    'semantic', 'instance', 'depth', 'rgb', 'image_2', 'label_2', 'img1', 'trainannot', 'valannot', 'testannot',
}  # fmt: skip
#: Folders of images whose labels lie elsewhere; the folders in them are cities or videos.
_LABELLED_ELSEWHERE = {'leftimg8bit', 'img_dir', 'jpegimages'}
#: So many classes are looked into, and so many names in each; photographs have more than so many colours.
_CLASSES, _NAMES, _COLOURS = 5, 200, 256
#: So many images of a class are opened to tell what they are: one may be damaged.
_LOOKED_AT = 3


def splits_of_classes(target: str) -> Dict[str, str]:
    """Split -> its folder of class folders, the training first; empty where a target is no such folder.

    Args:
        target (str): A folder of classes (of which the split is ``''``), or of splits.
    """
    path = os.path.abspath(target)
    if not os.path.isdir(path) or _LABELLED_ELSEWHERE.intersection(path.lower().split(os.sep)):
        return {}
    names = _folders(target)
    splits = [name for name in SPLITS if name in names]
    if not splits:
        return {'': target} if _is_of_classes(target, names) else {}
    found = {split: os.path.join(target, split) for split in splits}
    return found if all(_is_of_classes(folder, _folders(folder)) for folder in found.values()) else {}


def _folders(folder: str, hidden: bool = False) -> List[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(one.name for one in entries if one.is_dir() and (hidden or not one.name.startswith('.')))
    except OSError:
        return []


def _is_of_classes(folder: str, names: Sequence[str]) -> bool:
    """Whether photographs lie in at least two of these folders, and none beside them."""
    if len(names) < 2 or any(name.lower() in NO_CLASSES for name in names) or _images(folder):
        return False
    some = [images for images in map(_images, (os.path.join(folder, name) for name in names[:_CLASSES])) if images]
    looked_at = [image for images in some for image in images[:_LOOKED_AT]]
    return len(some) > 1 and 2 * sum(map(_is_photo, looked_at)) > len(looked_at)


def _images(folder: str) -> List[str]:
    """The first images of a folder."""
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _ in zip(entries, range(_NAMES))]
    except OSError:
        return []
    return [os.path.join(folder, name) for name in sorted(names) if is_image_name(name)]


def _is_photo(path: str) -> bool:
    """Whether an image is no label map: one in colour, of more colours than classes have."""
    try:
        from PIL import Image

        with open_regular(path) as file, Image.open(file) as opened:
            return opened.mode in ('RGB', 'CMYK') and opened.getcolors(_COLOURS) is None
    except Exception:  # a damaged file raises what it likes
        return False


def scan_class_folder(
    folder: str,
    num_classes: Optional[int] = None,
    class_names: Optional[Sequence[str]] = None,
    of_train: str = '',
) -> LabelFacts:
    """Counts the images of each class. No image is opened.

    Args:
        folder (str): The folder of class folders.
        num_classes (int, optional): Classes of the model. Default: as many as there are folders.
        class_names (sequence of str, optional): The classes of the model. Default: those of the training.
        of_train (str): The folder of the training. Default: this one is it.

    Returns:
        LabelFacts: ``kind='instances'``, ``of_images=True``.
    """
    faults = Faults()
    names = _folders(folder, hidden=True)  # as mmengine and torchvision list them
    for name in names:
        if name.startswith('.'):
            faults.add('a hidden folder is numbered among the classes', f'{folder}: {name}')
    meant = list(class_names or (_folders(of_train, hidden=True) if of_train else names))
    if names != meant:
        lacks, more = (', '.join(sorted(set(a) - set(b))[:5]) for a, b in ((meant, names), (names, meant)))
        words = [f'lacks {lacks}'] * bool(lacks) + [f'has {more}, too'] * bool(more) or ['they are in another order']
        faults.add('the class folders are not the classes', f'{folder}: {" and ".join(words)}')
    elif num_classes is not None and len(names) < num_classes:
        faults.add('there are fewer class folders than classes', f'{folder}: {len(names)} of {num_classes}')
    images: List[Labelled] = []
    for label, name in enumerate(names):
        of_class = [one for one in listed(os.path.join(folder, name), faults, '') if is_image_name(one)]
        images += [Labelled(f'{name}/{one}: {label}', os.path.join(folder, name, one), [label]) for one in of_class]
    return facts_of_images(images, folder, names, num_classes, faults)
