"""Labels that RF-DETR assigns to categories, depending on its release and on the layout of the data set.

Source: datasets/coco.py, datasets/o365.py and detr.py of rfdetr 1.4.3, 1.5.0, 1.6.0, 1.6.5, 1.7.1, 1.8.3, 1.9.0, 1.9.1,
1.9.2, 1.10.1 and 1.11.2.
"""

from __future__ import annotations

import os
import re
from importlib import metadata
from typing import Dict, List, Optional, Tuple

from mmguard.facts.labels import CocoFacts
from mmguard.formats.coco.file import read_coco
from mmguard.formats.coco.records import CocoFile
from mmguard.formats.faults import Faults
from mmguard.labels.numbering import IDS, POSITIONS

#: First releases that renumber the categories of a Roboflow layout, that count categories with the supercategory
#: "none", and that give no label to a root category without an annotation.
_RENUMBERS, _COUNTS_ALL, _LEAVES_OUT = (1, 5, 0), (1, 6, 0), (1, 9, 2)
#: Annotation file of each folder of a Roboflow layout.
_ROBOFLOW = '_annotations.coco.json'
#: Annotation files of ``dataset_file='coco'`` and ``'o365'``, whose ids are the labels in every release.
_IDS_ARE_LABELS = re.compile(r'instances_(?:train|val)2017\.json|zhiyuan_objv2_\w+\.json')
_NO_PARENT = ('', 'none', 'null')


def read_release() -> Optional[Tuple[int, ...]]:
    """Return the installed release of RF-DETR as (major, minor, patch), or ``None`` if RF-DETR is not installed."""
    try:
        found = re.match(r'(\d+)\.(\d+)\.(\d+)', metadata.version('rfdetr'))
    except metadata.PackageNotFoundError:
        return None
    return tuple(map(int, found.groups())) if found else None


def number_by_rfdetr(
    coco: CocoFile, path: str, labels: Optional[str], outputs: Optional[int], details: CocoFacts
) -> Tuple[Optional[str], List[int]]:
    """Return how the installed RF-DETR, or the newest if none is installed, numbers categories.

    Store the release, and the categories that other releases number differently, in ``details``.

    Args:
        labels (str, optional): ``'positions'`` or ``'ids'`` if the user chose one, else ``None``.
        outputs (int, optional): Number of outputs of the model. Default: the number of categories with a label + 1.

    Returns:
        tuple[str, list[int]]: ``'positions'`` or ``'ids'`` (``None`` if that depends on the release or the layout), and
        for positions, the codes of the categories in the order of their labels.
    """
    release, (folder, name) = read_release(), os.path.split(path)
    train = os.path.join(os.path.dirname(folder), 'train', _ROBOFLOW)
    counts = coco
    if name == _ROBOFLOW and os.path.basename(folder) != 'train' and os.path.isfile(train):
        counts = read_coco(train, train, Faults())  # valid and test get the labels of the training set
    codes = sorted({code for code, _ in counts.categories})
    parents = _find_empty_parents(counts)
    if release is None or release >= _LEAVES_OUT:
        codes = [code for code in codes if code not in parents] or codes
    if release is None or release < _COUNTS_ALL:
        details.uncounted = coco.supercategories.count('none')
    if labels is None and (_IDS_ARE_LABELS.fullmatch(name) or (release is not None and release < _RENUMBERS)):
        labels = IDS
    if labels is None and name == _ROBOFLOW and release is not None:
        labels = POSITIONS
    used = set(coco.annotations.category_id.tolist()) & {code for code, _ in coco.categories}
    counted = max(len(codes), len(coco.categories) - details.uncounted)
    if labels is None and not parents and all(0 <= code < (outputs or counted + 1) for code in used):
        labels = POSITIONS  # valid as ids, too
    if labels != IDS and (release is None or release < _LEAVES_OUT):
        details.parents = list(parents.values())
    details.release = '.'.join(map(str, release or ()))
    return labels, codes


def _find_empty_parents(coco: CocoFile) -> Dict[int, str]:
    """Return {code: name} of the categories without an annotation that are the supercategory of another category."""
    pairs = zip(coco.categories, coco.supercategories)
    named = {word for (_, name), word in pairs if word not in (*_NO_PARENT, name)}
    used = set(coco.annotations.category_id.tolist())
    return {code: name for code, name in coco.categories if name in named and code not in used}
