"""Which format the labels of a target have: the one answer for scan and fix, on a disk and behind a URL."""

from __future__ import annotations

from typing import Callable, List, NamedTuple, Optional

from mmguard.tools.scan.plans.plan import CannotScan
from mmguard.tools.storage.urls import is_url

NNUNET = 'nnunet'
#: Of a program whose files are not read.
OTHER_PROGRAM = 'other_program'
VOC = 'voc'
YOLO = 'yolo'
LABELME = 'labelme'
#: A folder of COCO files, and one whose folders are the classes.
COCO_FOLDER, CLASS_FOLDERS = 'coco_folder', 'class_folders'


class _Format(NamedTuple):
    """A format.

    Attributes:
        name (str): One of the above.
        is_one (callable): Whether a target has it.
        anywhere (bool): Whether it is looked for behind a URL, too.
        beside_suffix (bool): Whether it is looked for where the user says how the names of label maps end.
    """

    name: str
    is_one: Callable[[str], object]
    anywhere: bool = True
    beside_suffix: bool = False


def format_of(target: str, suffix: Optional[str] = None) -> str:
    """The format of a target, by its name and its first files.

    Args:
        target (str): A folder or file, or its URL.
        suffix (str, optional): How the names of label files end, where the user says it.

    Returns:
        str: One of the names of this module; empty: none of them, but perhaps a config, a COCO JSON or label maps.

    Raises:
        CannotScan: It lies behind a URL, and is read from a disk alone.
    """
    known = [one for one in _formats() if (one.anywhere or not is_url(target)) and (one.beside_suffix or not suffix)]
    found = next((one.name for one in known if one.is_one(target)), '')
    if found == LABELME and is_url(target):
        raise CannotScan(
            f'{target}: files of Labelme, which are read from a disk: copy them here, or mount the storage'
        )
    return found


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
        _Format(OTHER_PROGRAM, words_of_program, anywhere=False),
        _Format(VOC, is_voc, beside_suffix=True),
        _Format(YOLO, is_yolo, beside_suffix=True),
        _Format(LABELME, is_labelme),
        _Format(COCO_FOLDER, coco_files, anywhere=False),
        _Format(CLASS_FOLDERS, splits_of_classes, anywhere=False),
    ]
