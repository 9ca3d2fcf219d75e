"""Format of Pascal VOC: a folder of XML files, one per image, with or without an image list per split."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import FrozenSet, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from mmguard.facts.labels import AnnotationFacts, LabelFacts
from mmguard.files.containment import OutsideError, find_inside, resolve_inside
from mmguard.files.images import open_image
from mmguard.formats.faults import Faults
from mmguard.formats.files import (
    FILES,
    find_missing_files,
    find_size_mismatches,
    is_folder,
    is_image_name,
    list_folders,
    list_names,
    read_shown_size,
)
from mmguard.formats.format import CannotCorrect, Corrected, Format, LabelFiles, keep_file, list_names_below
from mmguard.formats.options import FixOptions, ScanOptions
from mmguard.formats.table import (
    EXAMPLES,
    LARGEST_SIDE,
    NO_NUMBER,
    WRONG_SIZE_FAULT,
    Table,
    facts_of,
    list_twice,
    table_of_names,
)
from mmguard.formats.voc.records import VocFile, read_voc

#: Maximum number of bytes of a list of images.
_LARGEST_LIST = 1 << 28
#: Folder of the images of a VOC data set; it has no labels.
_IMAGES = 'JPEGImages'

_RECORD_ADVICE = 'Correct the listed files, or export them again with a <size> and without XML namespaces.'


class Voc(Format):
    """The format of a folder of Pascal VOC XML files, with or without Annotations, ImageSets and JPEGImages."""

    name = 'voc'
    beside_suffix = True

    def detect(self, target: str) -> bool:
        """Return True if XML files are in a folder, in an Annotations folder, or next to images in a subfolder."""
        below = [os.path.join(target, name) for name in list_folders(target, _LOOKED_AT)[:_FOLDERS]]
        named = (os.path.join(place, 'Annotations') for place in (target, *below))
        return any(map(_has_xml, (target, *named))) or any(map(_has_xml_next_to_images, below))

    def read(self, target: str, options: ScanOptions) -> LabelFacts:
        return scan_voc(target, options.num_classes, options.classes)

    def correct(self, data: bytes, options: FixOptions) -> Corrected:
        from mmguard.formats.voc.records import correct_voc

        return correct_voc(data, options)

    def files(self, target: str, options: FixOptions) -> LabelFiles:
        if options.label_map:
            raise CannotCorrect('--label-map maps numbers, but VOC has class names: list the valid ones with --classes')
        names = sorted(list_names_below(target))
        images = _find_images(names)
        lists = [name for name in names if 'ImageSets' in Path(name).parts]
        return LabelFiles(
            [(os.path.join(target, name), name) for name in (*filter(_is_xml, names), *lists, *sorted(images))],
            lambda data, name: self.correct(data, options) if _is_xml(name) else keep_file(data, name),
            images,
            _read_one,
        )


def _read_one(path: str) -> Optional[LabelFacts]:
    if not _is_xml(path):
        return None
    folder, name = os.path.split(path)
    return scan_voc_files(folder, [VocImage('', name)], images=False)


def _is_xml(name: str) -> bool:
    return name.lower().endswith('.xml')


def _find_images(names: List[str]) -> FrozenSet[str]:
    """Return the images of a VOC folder: all files in JPEGImages, and images named like an XML file."""
    annotated = {os.path.splitext(name)[0] for name in names if _is_xml(name)}
    return frozenset(
        name
        for name in names
        if not _is_xml(name)
        and (_IMAGES in Path(name).parts or (is_image_name(name) and os.path.splitext(name)[0] in annotated))
    )


#: Maximum numbers of inspected names of a folder, and of folders among them; VOCdevkit has one folder per year.
_LOOKED_AT, _FOLDERS = 1000, 20


class VocImage(NamedTuple):
    """Paths of an image and of its XML file."""

    name: str  #: Path of the image relative to the root.
    xml: str  #: Path of the XML file relative to the root.


def scan_voc(root: str, num_classes: Optional[int] = None, class_names: Optional[Sequence[str]] = None) -> LabelFacts:
    """Read all XML files of a VOC data set. Invalid content is recorded, and never raises.

    The files are in ``Annotations`` of one or several folders (``VOCdevkit``), or in the folder itself. Labels are
    positions in ``class_names``, by default the names that occur, in alphabetical order. mmdet silently drops objects
    with other names; ``annotations.left_out`` counts them.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are XML files.
    """
    faults = Faults()
    listed = [image for folder in _find_data_sets(root, faults) for image in _list_all_files(root, folder, faults)]
    # Without JPEGImages, only a data set's own class knows where the images are.
    places = {os.path.dirname(image.name) for image in listed}
    images = all(os.path.isdir(os.path.join(root, place)) for place in places)
    facts = scan_voc_files(root, listed, num_classes, class_names, images=images, faults=faults)
    assert facts.annotations is not None
    facts.annotations.sources = [root]
    return facts


def scan_voc_files(
    root: str,
    listed: Sequence[VocImage],
    num_classes: Optional[int] = None,
    class_names: Optional[Sequence[str]] = None,
    min_size: int = 0,
    bbox_min_size: int = 0,
    images: bool = True,
    faults: Optional[Faults] = None,
    boundary: str = '',
) -> LabelFacts:
    """Read the listed files like :func:`scan_voc`. Images outside ``boundary`` (default: ``root``) count as missing."""
    faults = Faults() if faults is None else faults
    read: List[Tuple[VocImage, VocFile]] = []
    for image in listed:
        file = read_voc(os.path.join(root, image.xml), image.xml, faults)
        if file is not None:
            read.append((image, _add_size(root, image, file, faults)))
    found = Counter(voc_object.name for _, file in read for voc_object in file.objects)
    names = list(sorted(found) if class_names is None else class_names)
    table = _build_table(read, names, sorted(found), bbox_min_size)
    table.path_of = lambda place: find_inside(root, read[place][0].name, boundary)
    others = set(found) - set(names)
    files = [image.xml for image, file in read if any(one.name in others for one in file.objects)]
    boxless = int((~table.boxed).sum())
    annotations = AnnotationFacts(
        'voc',
        dict(enumerate(names)),
        dict.fromkeys(names, 0),
        min_size=min_size,
        labelled_by='class list',
        names_from='objects',
        record_advice=_RECORD_ADVICE,
        left_out_names={name: found[name] for name in sorted(others)},
        left_out_files=files[:EXAMPLES],
        duplicate_names=list_twice(names),
        duplicate_files=list_twice(image.name for image in listed)[:EXAMPLES],
        without_key={'object.bndbox': boxless} if boxless else {},
    )
    if images:
        annotations.missing, annotations.missing_files = find_missing_files(
            root, [image.name for image in listed], faults, boundary
        )
        annotations.sizes_compared, annotations.size_mismatches = find_size_mismatches(
            root, [image.name for image, _ in read], table.sizes, boundary
        )
    facts = facts_of(table, num_classes, names, annotations)
    facts.boxes.counts_from_one = True
    annotations.unreadable = faults.to_dict()
    return facts


def read_list(path: str, source: str, faults: Faults) -> List[str]:
    """Return the lines of an image list, split as in mmengine. If it cannot be read, add a fault and return []."""
    try:
        lines = FILES.read(path, _LARGEST_LIST).decode('utf-8').split('\n')
        return lines if lines[-1] else lines[:-1]
    except UnicodeDecodeError:
        faults.add('the list of images is not UTF-8', source)
    except (OSError, ValueError) as error:
        faults.add(f'the list of images cannot be read: {getattr(error, "strerror", None) or error}', source)
    return []


def find_listed_images(
    lines: Iterable[str], folder: str, image_folder: str, xml_folder: str, source: str, faults: Faults
) -> List[VocImage]:
    """Return the listed images with the paths that mmdet reads; add a fault for paths outside of the data set."""
    found = []
    for stem in (line.rstrip('\r') for line in lines):
        try:
            resolve_inside(os.curdir, stem)
        except OutsideError as error:
            faults.add('the list of images contains a path outside of the data set', f'{source}: {error}')
            continue
        image, xml = os.path.join(image_folder, f'{stem}.jpg'), os.path.join(xml_folder, f'{stem}.xml')
        found.append(VocImage(os.path.join(folder, image), os.path.join(folder, xml)))
    return found


def _find_data_sets(root: str, faults: Faults) -> List[str]:
    """Return the names of the folders in the root that contain annotations, or [''] for the root itself."""
    if os.path.isdir(os.path.join(root, 'Annotations')):
        return ['']
    try:
        with os.scandir(root) as entries:
            below = sorted(entry.name for entry in entries if is_folder(entry))
    except (OSError, ValueError) as error:
        faults.add(f'the folder cannot be read: {getattr(error, "strerror", None) or error}', root)
        return []
    named = [name for name in below if os.path.isdir(os.path.join(root, name, 'Annotations'))]
    if named or _has_xml(root):
        return named or ['']
    return [name for name in below if _has_xml_next_to_images(os.path.join(root, name))] or ['']


def _has_xml(folder: str) -> bool:
    return any(map(_is_xml, list_names(folder, _LOOKED_AT)))


def _has_xml_next_to_images(folder: str) -> bool:
    """Return True if an image is next to its XML file, as in exports that have a folder per split."""
    files = list_names(folder, _LOOKED_AT)
    stems = {os.path.splitext(name)[0] for name in files if _is_xml(name)}
    return any(is_image_name(name) and os.path.splitext(name)[0] in stems for name in files)


def _list_all_files(root: str, folder: str, faults: Faults) -> List[VocImage]:
    annotations = os.path.join(folder, 'Annotations')
    bare = not os.path.isdir(os.path.join(root, annotations))
    xml_folder, image_folder = (folder, folder) if bare else (annotations, os.path.join(folder, 'JPEGImages'))
    try:
        names = os.listdir(os.path.join(root, xml_folder) if xml_folder else root)
        stems = sorted(name[:-4] for name in names if _is_xml(name))
    except (OSError, ValueError) as error:
        faults.add(f'the folder cannot be read: {getattr(error, "strerror", None) or error}', xml_folder or root)
        return []
    if not stems:
        faults.add('the folder holds no XML file', os.path.join(root, xml_folder))
    return find_listed_images(stems, '', image_folder, xml_folder, xml_folder or root, faults)


def _add_size(root: str, image: VocImage, file: VocFile, faults: Faults) -> VocFile:
    """Return the content of an XML file. If its size is missing, read it from the image, as mmdet does."""
    if file.size is None:
        try:
            with FILES.open(os.path.join(root, image.name)) as image_file, open_image(image_file) as opened:
                height, width = read_shown_size(opened)
                return VocFile((float(height), float(width)), file.objects)
        except Exception as error:  # decoders raise many types for a damaged file
            faults.add('has no size, and its image cannot be read: mmdet stops here', f'{image.xml}: {error}')
    elif NO_NUMBER not in file.size and not all(1 <= side <= LARGEST_SIDE for side in file.size):
        faults.add(WRONG_SIZE_FAULT, f'{image.xml}: {file.size[1]:g} x {file.size[0]:g}')
    return file


def _build_table(
    files: Sequence[Tuple[VocImage, VocFile]], names: Sequence[str], categories: Sequence[str], bbox_min_size: int
) -> Table:
    found = [(number, one) for number, (_, file) in enumerate(files) for one in file.objects]
    sizes = [file.size for _, file in files]
    rows = [(number, one.name, one.corners) for number, one in found]
    table = table_of_names([image.xml for image, _ in files], sizes, rows, names, categories)
    table.written = np.array([one.written for _, one in found], float).reshape(-1, 4)
    table.ignored = np.array([one.difficult for _, one in found], bool)
    if bbox_min_size:
        with np.errstate(invalid='ignore'):
            small = (table.corners[:, 2:] - table.corners[:, :2] < bbox_min_size).any(axis=1)
        table.ignored |= table.boxed & small
    return table
