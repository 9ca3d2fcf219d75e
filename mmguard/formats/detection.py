"""Detection of a target's format among the built-in formats and those of installed packages and plugins."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import List, Optional, Tuple

from mmguard.entry_points import find_entry_points
from mmguard.facts.labels import LabelFacts
from mmguard.formats.coco import Coco
from mmguard.formats.folders import ClassFolders
from mmguard.formats.format import Format
from mmguard.formats.maps import LabelMaps
from mmguard.formats.unsupported_formats import UnsupportedFormat
from mmguard.formats.voc import Voc
from mmguard.formats.yolo import Yolo

#: Formats in the order of detection: files that identify a format may also occur in later formats.
BUILT_IN: List[Format] = [
    UnsupportedFormat(), Voc(), Yolo(), Coco(), ClassFolders(), LabelMaps(),
]  # fmt: skip
#: Group of entry points that name subclasses of :class:`Format`.
GROUP = 'mmguard.formats'


def detect(target: str, suffix: Optional[str] = None) -> Optional[Format]:
    """Return the format of a target, judged by its name and first files; ``None`` if none fits (e.g. for a config).

    Formats of packages and plugins are tried first.

    Args:
        suffix (str, optional): End of the names of label maps, if ``--suffix`` is given.
    """
    is_folder = os.path.isdir(target)
    for one in (*_load_installed(), *BUILT_IN):
        if suffix and is_folder and not one.beside_suffix:
            continue
        if (is_folder or target.lower().endswith(one.endings)) and one.detect(target):
            return one
    return None


@lru_cache(maxsize=None)
def _load_installed() -> Tuple[Format, ...]:
    return tuple(point.load(lambda kind: kind()) for point in find_entry_points(GROUP))


def find_format(labels: LabelFacts) -> Format:
    """Return the format of the label files that ``labels`` describes."""
    described = labels.annotations or labels.volumes
    name = LabelMaps.name if labels.maps is not None or described is None else described.format
    return next(one for one in (*BUILT_IN, *_load_installed()) if name in (one.name, *one.also))
