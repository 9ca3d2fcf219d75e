"""The label files of a data set of MMRotate's, as its class finds and reads them."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

from mmguard.config.classes import MISSING, default_of
from mmguard.findings.facts import LabelFacts
from mmguard.tools.scan.annotations.faults import Faults
from mmguard.tools.scan.annotations.oriented.dota import DIFF_THR, read_dota
from mmguard.tools.scan.annotations.oriented.labels import DOTA, Labelled, Listing
from mmguard.tools.scan.annotations.oriented.scan import ReadOne, Said, scan_listing
from mmguard.tools.scan.annotations.oriented.xml import DIOR, HRSC, SHIP, Reading, read_xml
from mmguard.tools.scan.annotations.voc import read_list
from mmguard.tools.scan.sources.folders import files_in
from mmguard.tools.storage.urls import is_url

if TYPE_CHECKING:
    from mmguard.tools.scan.annotations.datasets import DetDataset

#: Class of MMRotate -> what its files are written in. Others derive from them.
FAMILIES = {'DOTADataset': DOTA, 'DIORDataset': DIOR, 'HRSCDataset': HRSC}
#: Folder of the label files in a config, where the class has it from nothing else.
_SUBFOLDER = {DIOR: 'Annotations/Oriented Bounding Boxes/', HRSC: 'Annotations'}
#: Number of a kind of ship, in `metainfo` -> as HRSC writes it.
_CLASS_ID = '1000000{}'


def place_of_labels(dataset: DetDataset) -> Tuple[str, str]:
    """The setting that says where the label files of a data set lie, and their folder."""
    if dataset.family == DOTA:
        return 'ann_file', os.path.normpath(dataset.ann_file)
    below = str(_setting(dataset, 'ann_subdir', _SUBFOLDER[dataset.family]))
    return 'ann_subdir', os.path.normpath(os.path.join(_root(dataset), below))


def is_without_labels(dataset: DetDataset) -> bool:
    """Whether it lists images alone, to be sent in."""
    return dataset.family == DOTA and not dataset.settings.get('ann_file')


def scan_oriented_dataset(dataset: DetDataset, num_classes: Optional[int], min_size: int) -> LabelFacts:
    """Scans the files of one data set.

    Args:
        dataset (DetDataset): The data set.
        num_classes (int, optional): Classes of the head.
        min_size (int): Images with a shorter side are left out.

    Raises:
        ValueError: There is not one object, and nothing wrong.
    """
    _, folder = place_of_labels(dataset)
    if is_url(folder):
        raise ValueError(f'{dataset.type} behind a URL is not read: copy {folder} to a disk')
    faults = Faults()
    names = dataset.class_names or []
    if dataset.family == DOTA:
        listing = _of_folder(dataset, folder)
        diff_thr = int(_setting(dataset, 'diff_thr', DIFF_THR))
        read_one: ReadOne = partial(read_dota, diff_thr=diff_thr, headers=False)
        return scan_listing(listing, Said(DOTA, folder, num_classes, names), read_one, faults)
    least = 0 if dataset.test_mode else int(dataset.filter_cfg.get('bbox_min_size') or 0)
    reading = Reading(dataset.family, _setting(dataset, 'ann_type', 'obb') == 'hbb', None, least)
    if dataset.family == HRSC:
        reading = reading._replace(kinds=_kinds(dataset, names))
        names = names if reading.kinds is not None else [SHIP]
    listing = _of_list(dataset, folder, faults)
    said = Said(dataset.family, folder, num_classes, names, min_size)
    return scan_listing(listing, said, partial(read_xml, reading=reading), faults)


def _of_folder(dataset: DetDataset, folder: str) -> Listing:
    ending = f'.{_setting(dataset, "img_suffix", "png")}'
    texts = [name for name in files_in(folder).names if name.endswith('.txt') and not name.startswith('.')]
    labels = [Labelled(os.path.join(folder, name), _short(dataset, folder, name), name[:-4] + ending) for name in texts]
    stems = {name[:-4] for name in texts}
    images = [name for name in files_in(dataset.images).names if name.endswith(ending)]
    return Listing(labels, [name for name in images if name[: -len(ending)] not in stems], dataset.images)


def _of_list(dataset: DetDataset, folder: str, faults: Faults) -> Listing:
    image = '{}.jpg'
    if dataset.family == HRSC:
        image = os.path.join(str(_setting(dataset, 'img_subdir', 'AllImages')), '{}.bmp')
    stems = read_list(dataset.ann_file, dataset.ann_file, faults)
    files = [
        Labelled(os.path.join(folder, f'{stem}.xml'), _short(dataset, folder, f'{stem}.xml'), image.format(stem))
        for stem in stems
    ]
    return Listing(files, [], dataset.images)


def _short(dataset: DetDataset, folder: str, name: str) -> str:
    """A file as messages name it: relative to the data root, where it is in there."""
    path = os.path.join(folder, name)
    inside = os.path.relpath(path, dataset.root) if dataset.root else path
    return path if inside.startswith(os.pardir) else inside


def _root(dataset: DetDataset) -> str:
    return dataset.images if dataset.family == HRSC else dataset.root


def _kinds(dataset: DetDataset, names: List[str]) -> Optional[Dict[str, str]]:
    if not _setting(dataset, 'classwise', False):
        return None
    metainfo: Any = {**getattr(dataset.cls, 'METAINFO', {}), **dict(dataset.settings.get('metainfo') or {})}
    return {_CLASS_ID.format(number): name for number, name in zip(metainfo.get('classes_id', ()), names)}


def _setting(dataset: DetDataset, name: str, usual: Any) -> Any:
    """A setting of the config, else the default of the class."""
    default = default_of(dataset.cls, name)
    return dataset.settings.get(name, usual if default is MISSING else default)
