"""Files of other programs, which are not read: what they are, and what makes something of them that is."""

from __future__ import annotations

import os
from typing import Dict, Tuple

from mmguard.tools.scan.sources.folders import is_gray, is_image_name, walk
from mmguard.tools.storage.files import open_regular

#: So many names of a folder are looked at, and so many files of an ending in each; so much of a file tells what it is.
_NAMES, _OPENED, _HEAD = 2000, 5, 1 << 12
_BY_DATUMARO = 'write it as COCO, `datum convert -i {target} -if {format} -f coco_instances -o coco`, and name that'
_MATLAB = (
    'mmseg trains on label maps (.png) that its tools/dataset_converters write. Pascal-Context: pascal_context.py '
    'makes them of trainval_merged.json (with the package `detail`), and not of the .mat of 459 labels; name '
    'SegmentationClassContext then. SBD: voc_aug.py; COCO-Stuff 10k: coco_stuff10k.py'
)
#: Ending -> what stands in the beginning, and what it is.
_KNOWN: Dict[str, Tuple[bytes, str]] = {
    '.xml': (b'<imagesize>', f'XML of the LabelMe of MIT: {_BY_DATUMARO.replace("{format}", "label_me")}'),
    '.json': (b'"dm_format_version"', f'JSON of Datumaro: {_BY_DATUMARO.replace("{format}", "datumaro")}'),
    '.csv': (
        b'ImageID,Source,LabelName',
        'csv of OpenImages: name the config of mmdet that reads them (OpenImagesDataset)',
    ),
    '.mat': (b'MATLAB', f'.mat of MATLAB: {_MATLAB}'),
}


def words_of_program(target: str) -> str:
    """What a file, or the first file of such a kind in a folder, is; empty for those of nobody that is known.

    Args:
        target (str): A file or a folder on disk.
    """
    if os.path.isfile(target):
        return _words_of(target, os.path.dirname(os.path.abspath(target)))
    seen = 0
    for folder, names, _ in walk(target, lambda *_: None):
        maps = next((name for name in names if is_image_name(name)), '')
        if maps and is_gray(os.path.join(folder, maps)):
            return ''
        for ending in _KNOWN:
            some = [os.path.join(folder, name) for name in names if name.lower().endswith(ending)][:_OPENED]
            words = next(filter(None, (_words_of(path, target) for path in some)), '')
            if words:
                return words
        seen += len(names)
        if seen > _NAMES:
            break
    return ''


def _words_of(path: str, folder: str) -> str:
    mark, words = _KNOWN.get(os.path.splitext(path)[1].lower(), (b'', ''))
    try:
        with open_regular(path) as file:
            is_one = bool(mark) and mark in file.read(_HEAD)
    except (OSError, ValueError):
        return ''
    return f'here is {words.replace("{target}", folder)}' if is_one else ''
