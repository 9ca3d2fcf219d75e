"""The file that a sample comes from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, List

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
