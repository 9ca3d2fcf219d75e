"""Which format the labels of a target have: the one answer for scan and fix, on a disk and behind a URL."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Callable, List, NamedTuple, Optional

from mmguard.files.whole import temporary_folder
from mmguard.tools.scan.fetched import HEAD
from mmguard.tools.scan.plans.plan import CannotScan
from mmguard.tools.scan.sources.folders import is_image_name, walk
from mmguard.tools.storage.ahead import ahead
from mmguard.tools.storage.files import FILES
from mmguard.tools.storage.urls import below, is_url, joined

NNUNET = 'nnunet'
CVAT = 'cvat'
#: Of Hugging Face: saved to disk, tables, and images beside metadata.
HF_SAVED, HF_TABLES, HF_IMAGES = 'hf_saved', 'hf_tables', 'hf_images'
ORIENTED = 'oriented'
#: Of a program whose files are not read.
OTHER_PROGRAM = 'other_program'
VOC = 'voc'
YOLO = 'yolo'
CITYSCAPES = 'cityscapes'
LABELME = 'labelme'
#: A folder of COCO files, and one whose folders are the classes.
COCO_FOLDER, CLASS_FOLDERS = 'coco_folder', 'class_folders'

#: Behind a URL are looked at: so many folders, names in each, beginnings of texts; of images the first beside them.
_FOLDERS, _NAMES, _TEXTS = 8, 100, 20
_TEXT_ENDINGS = ('.json', '.xml', '.txt', '.jsonl', '.csv')


class _Format(NamedTuple):
    """A format.

    Attributes:
        name (str): One of the above.
        is_one (callable): Whether a target has it.
        on_disk (str, optional): Where a disk alone is read for it, what is said of a URL; empty: nothing, it is not
            looked for there. Default: it is read anywhere.
        beside_suffix (bool): Whether it is looked for where the user says how the names of label maps end.
    """

    name: str
    is_one: Callable[[str], object]
    on_disk: Optional[str] = None
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
    formats = [one for one in _formats(suffix) if one.beside_suffix or not suffix]
    if not is_url(target):
        return next((one.name for one in formats if one.is_one(target)), '')
    with temporary_folder() as folder:
        here = ''
        for one in formats:
            if one.on_disk is None:
                if one.is_one(target):
                    return one.name
            elif one.on_disk and not suffix:
                here = here or _some_of(target, folder)
                if one.is_one(here):
                    raise CannotScan(
                        f'{target}: {one.on_disk}, which are read from a disk: copy them here, or mount the storage'
                    )
    return ''


def _formats(suffix: Optional[str]) -> List[_Format]:
    """In the order in which they are looked for: the signs of one may stand beside those of a later one."""
    from mmguard.tools.scan.annotations.cityscapes import is_cityscapes
    from mmguard.tools.scan.annotations.class_folders import splits_of_classes
    from mmguard.tools.scan.annotations.coco_folder import coco_files
    from mmguard.tools.scan.annotations.cvat import is_cvat
    from mmguard.tools.scan.annotations.hf import is_image_folder, saved_splits
    from mmguard.tools.scan.annotations.hf_parquet import parquet_splits
    from mmguard.tools.scan.annotations.labelme import is_labelme
    from mmguard.tools.scan.annotations.oriented.labels import oriented_format
    from mmguard.tools.scan.annotations.voc import is_voc
    from mmguard.tools.scan.nnunet.source import raw_datasets
    from mmguard.tools.scan.sources.other_programs import words_of_program
    from mmguard.tools.scan.yolo.sets import is_yolo

    of_hf = 'data sets of Hugging Face'
    return [
        _Format(NNUNET, raw_datasets, beside_suffix=True),
        _Format(CVAT, is_cvat, 'XML of CVAT', beside_suffix=True),
        _Format(HF_SAVED, saved_splits, of_hf, beside_suffix=True),
        _Format(HF_TABLES, parquet_splits, ''),
        _Format(HF_IMAGES, is_image_folder, of_hf),
        _Format(ORIENTED, oriented_format, 'labels of oriented boxes'),
        _Format(OTHER_PROGRAM, words_of_program, ''),
        _Format(VOC, is_voc, beside_suffix=True),
        _Format(YOLO, is_yolo, beside_suffix=True),
        _Format(CITYSCAPES, partial(is_cityscapes, suffix=suffix), 'polygons of Cityscapes', beside_suffix=True),
        _Format(LABELME, is_labelme, 'files of Labelme'),
        _Format(COCO_FOLDER, coco_files, ''),
        _Format(CLASS_FOLDERS, splits_of_classes, ''),
    ]


def _some_of(url: str, folder: str) -> str:
    """Where the names below a URL are now, of the first folders, and what their first files hold."""
    here = os.path.join(folder, os.path.basename(url))
    if FILES.is_file(url):
        _write(here, FILES.content(url, most=HEAD).data)
        return here
    for place, names, _ in islice(walk(url, lambda at, error: None), _FOLDERS):
        inside = below(place, url).split('/')
        at = os.path.join(here, *inside)
        os.makedirs(at, exist_ok=True)
        some = names[:_NAMES]
        for name in some:
            _write(os.path.join(at, name), b'')
        texts = [name for name in some if name.lower().endswith(_TEXT_ENDINGS)][:_TEXTS]
        # Beside JSON an image says whether they are label maps.
        images = [name for name in some if is_image_name(name)][: 1 if texts else 0]
        wanted = [(name, HEAD) for name in texts] + [(name, None) for name in images]
        contents = ahead(partial(FILES.content, joined(place, name), None, most) for name, most in wanted)
        for (name, _), content in zip(wanted, contents):
            _write(os.path.join(at, name), content.data)
    return here


def _write(path: str, data: bytes) -> None:
    with suppress(OSError, ValueError), open(path, 'wb') as file:  # a name that this system does not take
        file.write(data)
