"""Which format the labels of a target have: the one answer for scan and fix, on a disk and behind a URL."""

from __future__ import annotations

import os
from itertools import islice
from typing import Callable, Dict, List, NamedTuple, Optional, Set

from mmguard.tools.scan.plans.plan import CannotScan
from mmguard.tools.scan.sources.folders import is_image_name, walk
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import is_url

NNUNET = 'nnunet'
#: Of a program whose files are not read.
OTHER_PROGRAM = 'other_program'
VOC = 'voc'
YOLO = 'yolo'
LABELME = 'labelme'
#: A folder of COCO files, and one whose folders are the classes.
COCO_FOLDER, CLASS_FOLDERS = 'coco_folder', 'class_folders'

#: Behind a URL so many folders are looked at.
_FOLDERS = 8
_TEXT_ENDINGS = ('.json', '.txt', '.csv')


class _Format(NamedTuple):
    """A format.

    Attributes:
        name (str): One of the above.
        is_one (callable): Whether a target has it.
        beside_suffix (bool): Whether it is looked for where the user says how the names of label maps end.
    """

    name: str
    is_one: Callable[[str], object]
    beside_suffix: bool = False


def format_of(target: str, suffix: Optional[str] = None) -> str:
    """The format of a target, by its name and its first files.

    Args:
        target (str): A folder or file, or its URL.
        suffix (str, optional): How the names of label files end, where the user says it.

    Returns:
        str: One of the names of this module; empty: none of them, but perhaps a config, a COCO JSON or label maps.

    Raises:
        CannotScan: It lies behind a URL, and is read from a disk only.
    """
    if is_url(target):
        return _far_format(target, suffix)
    formats = [one for one in _formats() if one.beside_suffix or not suffix]
    return next((one.name for one in formats if one.is_one(target)), '')


def _formats() -> List[_Format]:
    """In the order in which they are looked for: the signs of one may stand beside those of a later one."""
    from mmguard.tools.scan.annotations.class_folders import splits_of_classes
    from mmguard.tools.scan.annotations.coco_folder import coco_files
    from mmguard.tools.scan.annotations.labelme import is_labelme
    from mmguard.tools.scan.annotations.voc import is_voc
    from mmguard.tools.scan.nnunet.source import raw_datasets
    from mmguard.tools.scan.sources.other_programs import words_of_program
    from mmguard.tools.scan.yolo.sets import is_yolo

    return [
        _Format(NNUNET, raw_datasets, beside_suffix=True),
        _Format(OTHER_PROGRAM, words_of_program),
        _Format(VOC, is_voc, beside_suffix=True),
        _Format(YOLO, is_yolo, beside_suffix=True),
        _Format(LABELME, is_labelme),
        _Format(COCO_FOLDER, coco_files),
        _Format(CLASS_FOLDERS, splits_of_classes),
    ]


def _far_format(url: str, suffix: Optional[str]) -> str:
    """Return YOLO, or nothing: then it is a COCO JSON, or label maps. Text files of the images are other formats."""
    from mmguard.tools.scan.yolo.sets import is_yolo

    if is_yolo(url):
        return YOLO
    if suffix or not FILES.is_folder(url):
        return ''
    images: Set[str] = set()
    texts: Dict[str, str] = {}
    for folder, names, _ in islice(walk(url, lambda at, error: None), _FOLDERS):
        images.update(os.path.splitext(name)[0] for name in names if is_image_name(name))
        texts.update({os.path.splitext(name)[0]: name for name in names if name.lower().endswith(_TEXT_ENDINGS)})
        odd = [name for name in names if name.lower().endswith('.xml') or (folder == url and name == 'dataset.json')]
        odd += [texts[stem] for stem in sorted(images & texts.keys())]
        if odd:
            raise CannotScan(
                f'{url} holds {odd[0]}: behind a URL only label maps, a COCO JSON and YOLO are read. '
                f'Copy the data here, or mount the storage'
            )
    return ''
