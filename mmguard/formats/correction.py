"""Correction of label files in memory: a target's files, and their corrected content."""

from __future__ import annotations

import hashlib
import math
import os
from contextlib import suppress
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Optional, Tuple

from mmguard.errors import CannotRun
from mmguard.facts.labels import AnnotationFacts, LabelFacts
from mmguard.files.containment import is_really_inside
from mmguard.files.regular import check_regular, read_regular
from mmguard.formats.files import FILES, walk
from mmguard.labels.instances import LABEL_REASON, describe_boxes

#: Maximum number of bytes of a file that is corrected.
LARGEST = 1 << 31


class NotCorrected(Exception):
    """Reason why a file is left out."""


class Unreadable(NotCorrected):
    """Reason why no decoder can read a file."""


class CannotCorrect(CannotRun):
    """Reason why nothing can be corrected."""


class NotTried(CannotRun):
    """Reason why an edit is not tried, such as the size of a file."""


class Corrected(NamedTuple):
    """Result for one corrected file."""

    data: bytes  #: Its content; that of the original if nothing was changed.
    ending: str  #: Ending of its name.
    changes: List[str]  #: Changes as text; empty if nothing was changed.
    values: Dict[str, int]  #: Value as stored -> number of elements that were changed because of it.
    counts: Dict[str, int]  #: Kind of change (skipped, remapped, ...) -> number of changes.
    invalid: Optional[Dict[str, int]] = None  #: Value -> number of elements that stay invalid.


class LabelFiles(NamedTuple):
    """Label files of a target."""

    files: List[Tuple[str, str]]  #: (path, name in the copy) of each.
    correct: Callable[[bytes, str], Corrected]  #: Corrects the content of a file, given with its name in the copy.
    images: FrozenSet[str] = frozenset()  #: Names of images, which are linked.
    #: Reads one corrected file as a scan does (``None``: not a label file); what the scan rejects is not written.
    read: Optional[Callable[[str], Optional[LabelFacts]]] = None
    changed_copies: FrozenSet[str] = frozenset()  #: Names of files that change only because their copy is elsewhere.
    folder: str = ''  #: Folder that was searched, by default the target.


def correct_file(target: str, files: LabelFiles, path: str, name: str) -> Tuple[bytes, Corrected, int]:
    """Return the bytes of a label file, its correction, and its permissions.

    Args:
        target (str): The folder or file that is corrected.
        files (LabelFiles): Its label files.
        path (str): Path of the file.
        name (str): Its name in the copy.

    Raises:
        NotCorrected: The file is left out.
        OSError: The file cannot be read.
    """
    if path != target and not is_really_inside(path, get_folder(target)):
        check_regular(path)
        raise NotCorrected('a symbolic link that leads out of TARGET: replace it with a copy of the file (cp -L)')
    data, mode = read_regular(path, LARGEST), os.stat(path).st_mode
    corrected = files.correct(data, name)
    if files.read is not None:
        with FILES.replaced({path: corrected.data}), suppress(ValueError):  # an image may have no object
            _check(files.read(path) or LabelFacts())
    return data, corrected, mode


def get_folder(target: str) -> str:
    return target if os.path.isdir(target) else os.path.dirname(target)


def compute_digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check(labels: LabelFacts) -> None:
    found = labels.annotations or AnnotationFacts()
    # A VOC file without a size is fine: its image is not in the folder of the copy.
    wrong = [what for what in found.unreadable if not what.startswith('has no size')]
    wrong += describe_boxes(labels.reasons)
    wrong += [f'{count:,} without {key}' for key, count in found.without_key.items()]
    if labels.reasons.get(LABEL_REASON) or found.unnamed:
        wrong.append('annotations of categories that are not listed')
    for what, ids in (('images', found.duplicate_image_ids), ('categories', found.duplicate_category_ids)):
        wrong += [f'{what} that share an id: {", ".join(map(str, ids[:5]))}'] if ids else []
    if wrong:
        raise NotCorrected(f'not correctable here: {"; ".join(wrong)}')


def keep_file(data: bytes, name: str) -> Corrected:
    return Corrected(data, get_ending(name), [], {}, {})


def get_ending(name: str) -> str:
    return os.path.splitext(name)[1]


def list_names_below(folder: str) -> Iterator[str]:
    """Yield the names of all files in a folder and its subfolders that a scan sees, relative to it."""
    for place, names in walk(folder, lambda *_: None):
        for name in names:
            path = os.path.relpath(os.path.join(place, name), folder)
            if path != MANIFEST:
                yield path


#: Manifest that `mmguard fix` writes, JSON without its ending: no label file has this name. And its writer there.
MANIFEST, WRITER = 'mmguard.manifest', 'mmguard fix'


def number(value: Any) -> Optional[float]:
    """Return a finite number, parsed if it is text; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def parse_corners(values: Any) -> Optional[Tuple[float, ...]]:
    """Return four finite numbers; ``None`` for anything else."""
    found = [*map(number, values)] if isinstance(values, list) and len(values) == 4 else [None]
    return None if None in found else tuple(found)  # type: ignore[arg-type]


def shorten_number(value: float) -> float:
    """Return a number in its shortest form, without ``.0``."""
    return int(value) if value.is_integer() else value
