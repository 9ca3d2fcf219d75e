"""CVAT: an XML for all images, or a folder with such files, as "CVAT for images 1.1" and "for video" export them."""

from __future__ import annotations

import os
from itertools import islice
from typing import Dict, List, Mapping, Optional, Sequence

from mmguard.findings.facts import LabelFacts
from mmguard.text.words import counted
from mmguard.tools.scan.annotations.cvat_xml import CvatFile, CvatImage, read_cvat
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.shape_records import ShapeFile
from mmguard.tools.scan.annotations.shape_target import ShapeTarget
from mmguard.tools.scan.annotations.shapes import ShapeSet, facts_of_shapes, labels_of
from mmguard.tools.storage.files import open_regular

#: How labelling tools call what is no class.
NO_CLASS = ('background', '__ignore__')
#: So many names of a folder are looked at, and so many XML of them.
_NAMES, _OPENED = 5000, 20
_HEAD = 1 << 12


def is_cvat(target: str) -> bool:
    """Whether a target is an XML of CVAT, or a folder of which at least half of the XML are."""
    if os.path.isfile(target):
        return target.lower().endswith('.xml') and is_cvat_file(target)
    some = cvat_names(target, _NAMES)[:_OPENED]
    return bool(some) and 2 * sum(is_cvat_file(os.path.join(target, name)) for name in some) >= len(some)


def cvat_names(folder: str, most: Optional[int] = None) -> List[str]:
    """The XML files that lie in a folder itself."""
    try:
        with os.scandir(folder) as entries:  # of a folder of label maps, that may hold a million
            return sorted(entry.name for entry in islice(entries, most) if entry.name.lower().endswith('.xml'))
    except OSError:
        return []


def is_cvat_file(path: str) -> bool:
    """Whether an XML is of CVAT, by its beginning."""
    try:
        with open_regular(path) as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return False
    return b'<annotations' in head and any(tag in head for tag in (b'<meta', b'<version>', b'<image', b'<track'))


def scan_cvat(target: ShapeTarget) -> LabelFacts:
    """Reads the XML of a folder, or one. Never raises for what the files hold.

    Args:
        target (ShapeTarget): The folder, or one XML. The classes are the labels that the files declare, else the names
            that occur; the images are in ``images`` beside the XML, where it is there.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are images.

    Raises:
        ValueError: There is not one shape, and nothing wrong.
    """
    faults = Faults()
    beside = os.path.join(target.home_root, 'images')
    folder = target.images or (beside if os.path.isdir(beside) else None)
    found = target.read(lambda root, _: cvat_names(root), read_cvat, faults)
    frames = _frames_in(folder)
    read = [
        ShapeFile(file.name, _image_of(image, folder, frames), image.size, '', image.shapes)
        for file in found
        for image in file.images
    ]
    if not any(file.shapes for file in read) and not faults:
        raise ValueError(f'nothing was read: {_instead(found)}')
    declared = list(dict.fromkeys(label for file in found for label in file.labels)) or labels_of(read)
    given = declared if target.class_names is None else target.class_names
    classes = list(dict.fromkeys(name for name in given if name not in NO_CLASS))
    known = ShapeSet('cvat', target.path, classes, NO_CLASS, 'line {}'.format, True)
    counted_classes = target.class_names is None
    return facts_of_shapes(read, known, faults, target.num_classes, counted_classes, folder if target.look else None)


def _frames_in(folder: Optional[str]) -> Dict[str, str]:
    """Name without ending -> that of the file, of the frames of a video, whose ending no XML says."""
    if folder is None or not os.path.isdir(folder):
        return {}
    return {os.path.splitext(name)[0]: name for name in os.listdir(folder) if name.startswith('frame_')}


def _image_of(image: CvatImage, folder: Optional[str], frames: Mapping[str, str]) -> str:
    """The name of an image in its folder, in that of its subset where it is there."""
    if image.is_frame:  # the frames may never have been written
        return frames.get(image.name, image.name) if frames else ''
    in_subset = os.path.join(image.subset, image.name)
    is_there = folder is not None and bool(image.subset) and '\0' not in in_subset
    return in_subset if is_there and os.path.isfile(os.path.join(folder or '', in_subset)) else image.name


def _instead(found: Sequence[CvatFile]) -> str:
    images = counted(sum(len(file.images) for file in found), 'image')
    passed = sum(file.passed_over for file in found)
    return f'{images} of CVAT without a shape' + (f', with {passed:,} tags, skeletons or cuboids' if passed else '')
