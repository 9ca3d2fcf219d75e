"""From the label files of oriented boxes to the facts of a data set."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from functools import partial
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from mmguard.findings import yolo
from mmguard.findings.facts import LabelFacts
from mmguard.findings.views import nearest
from mmguard.findings.yolo import YoloFacts
from mmguard.text.words import counted
from mmguard.tools.scan.annotations.disk import shown_size
from mmguard.tools.scan.annotations.faults import NAMED, Faults
from mmguard.tools.scan.annotations.oriented.dota import read_dota
from mmguard.tools.scan.annotations.oriented.labels import DOTA, Listing, list_folder, oriented_format
from mmguard.tools.scan.annotations.oriented.quads import FRACTIONS
from mmguard.tools.scan.annotations.oriented.xml import DIOR, HRSC, Reading, read_xml
from mmguard.tools.scan.annotations.shape_records import ShapeFile
from mmguard.tools.scan.annotations.shape_target import ShapeTarget
from mmguard.tools.scan.annotations.shapes import ShapeSet, facts_of_shapes, labels_of

#: How likely a name is a slip for another one, as MG154 has it.
_ALIKE = 0.8
#: The classes of the data sets that have their names from these formats; DOTA 1.0 has the first 15.
CLASSES = {
    DOTA: (
        'plane', 'baseball-diamond', 'bridge', 'ground-track-field', 'small-vehicle', 'large-vehicle', 'ship',
        'tennis-court', 'basketball-court', 'storage-tank', 'soccer-ball-field', 'roundabout', 'harbor',
        'swimming-pool', 'helicopter', 'container-crane', 'airport', 'helipad',
    ),
    DIOR: (
        'airplane', 'airport', 'baseballfield', 'basketballcourt', 'bridge', 'chimney', 'expressway-service-area',
        'expressway-toll-station', 'dam', 'golffield', 'groundtrackfield', 'harbor', 'overpass', 'ship', 'stadium',
        'storagetank', 'tenniscourt', 'trainstation', 'vehicle', 'windmill',
    ),
    HRSC: ('ship',),
}  # fmt: skip

#: Reads one file, of its path and its name.
ReadOne = Callable[[str, str, Faults], Optional[ShapeFile]]


class Said(NamedTuple):
    """What is said of a data set, by its config or by the user.

    Attributes:
        format (str): ``'dota'``, ``'dior'`` or ``'hrsc'``.
        target (str): The folder of its label files.
        num_classes (int, optional): Classes of the head. Default: as many as there are names.
        class_names (sequence of str, optional): The classes. Default: the names that occur.
        min_size (int): Images with a shorter side are left out of training.
    """

    format: str
    target: str
    num_classes: Optional[int] = None
    class_names: Optional[Sequence[str]] = None
    min_size: int = 0


def scan_oriented(target: ShapeTarget, written: str = '') -> LabelFacts:
    """Reads the label files of a folder, or one. Never raises for what the files hold.

    Args:
        target (ShapeTarget): The folder, or the file. The classes are the names that occur, without slips for one of
            the data set that the format has its name from; the images are beside the label files, where they are there.
        written (str): The format. Default: what most of the files are in.

    Returns:
        LabelFacts: ``kind='instances'``; ``files`` are label files.

    Raises:
        ValueError: There is not one object, and nothing wrong.
    """
    faults = Faults()
    written = written or oriented_format(target.path) or DOTA
    listing = list_folder(target, written, faults)
    if not target.look:
        listing.images = None
    read_one: ReadOne = read_dota if written == DOTA else partial(read_xml, reading=Reading(written))
    said = Said(written, target.path, target.num_classes, target.class_names)
    facts = scan_listing(listing, said, read_one, faults)
    assert facts.annotations is not None
    facts.annotations.duplicate_files = []  # one image, several versions of its labels
    return facts


def scan_listing(listing: Listing, said: Said, read_one: ReadOne, faults: Faults) -> LabelFacts:
    """As :func:`scan_oriented`, of the files that are listed."""
    read: List[ShapeFile] = []
    for label in listing.files:
        file = read_one(label.path, label.name, faults)
        if file is not None:
            size = file.size or size_of_image(listing.images, label.image, faults)
            read.append(file._replace(image=label.image, size=size))
    found = labels_of(read)
    if not found and not faults:
        files = counted(len(listing.files), 'label file')
        raise ValueError(f'nothing was read: {files} without an object in {said.target}')
    names = list(said.class_names) if said.class_names is not None else _classes_in(found, said.format)
    known = ShapeSet(said.format, said.target, names, (), 'line {}'.format, True, said.min_size)
    facts = facts_of_shapes(read, known, faults, said.num_classes, said.class_names is None, listing.images)
    assert facts.annotations is not None
    in_unit = Counter(shape.kind for file in read for shape in file.shapes)[FRACTIONS]
    facts.annotations.inside_unit = in_unit
    facts.annotations.yolo = _about_rows(read, listing)
    return facts


def _classes_in(found: Sequence[str], written: str) -> List[str]:
    """The names that occur, but for slips where the others are those of the well-known data set."""
    known = CLASSES[written]
    others = [name for name in found if name not in known]
    meant = nearest(others, known, _ALIKE)
    if not others or not all(meant.values()):
        return sorted(found)
    return [name for name in known if name in found or name in meant.values()]


def _about_rows(read: Sequence[ShapeFile], listing: Listing) -> YoloFacts:
    """Objects that stand there twice, and images without a label file."""
    again = [f'{file.name}: line {shape.place}: {shape.label}' for file in read for shape in file.shapes if shape.again]
    about = YoloFacts(yolo.CORNERS, sum(len(file.shapes) for file in read))
    about.images = len(listing.files) + len(listing.bare) if listing.images is not None else 0
    for kind, places in ((yolo.TWICE, again), (yolo.NO_LABEL, sorted(listing.bare) if listing.images else [])):
        if places:
            about.counts[kind], about.faults[kind] = len(places), places[:NAMED]
    return about


def size_of_image(folder: Optional[str], image: str, faults: Faults) -> Optional[Tuple[float, float]]:
    """Height and width of an image; ``None`` where it is not there, or too large to be opened."""
    path = os.path.join(folder or '', image)
    if folder is None or not image or '\0' in path or not os.path.isfile(path):
        return None
    try:
        from PIL import Image
    except ImportError:  # annotations are scanned without pillow, too
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            with Image.open(path) as opened:
                height, width = shown_size(opened)
        return float(height), float(width)
    except Image.DecompressionBombError:  # images of DOTA are that large
        return None
    except Exception as error:  # a damaged file raises what it likes
        faults.add('cannot be read: the image', f'{image}: {str(error)[:120]}')
        return None
