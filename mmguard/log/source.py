"""The file that a sample comes from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, List, Sequence

from mmguard.labels.origin import file_of

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement

#: The name of what has none.
UNKNOWN = '<unknown>'


def source_of(sample: BaseDataElement) -> str:
    """The file that a sample's labels came from."""
    return file_of(sample) or UNKNOWN


def relative_to(source: str, roots: List[str]) -> str:
    """``source`` relative to the data root that holds it."""
    for root in roots:
        prefix = root.rstrip('/\\')
        if source.startswith(prefix) and source[len(prefix) : len(prefix) + 1] in ('/', os.sep):
            return source[len(prefix) + 1 :]
    return source


def path_of(name: str, roots: Sequence[str]) -> str:
    """Return a path that an editor can open, of a file that a log names; the name if no file or several are found."""
    paths = (os.path.join(root, name) for root in (*roots, ''))
    found = {os.path.realpath(path): path for path in paths if os.path.isfile(path)}
    return next(iter(found.values())) if len(found) == 1 else name  # two roots may have a file of this name
