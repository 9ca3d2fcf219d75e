"""How label files are read: what a process needs to know."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import numpy as np

from mmguard.files.regular import open_regular
from mmguard.tools.scan.annotations.faults import NAMED
from mmguard.tools.scan.examples import Examples
from mmguard.tools.scan.faults import CRASHES
from mmguard.tools.scan.yolo.images import image_faults
from mmguard.tools.scan.yolo.listing import TextItem
from mmguard.tools.scan.yolo.rows import TextRows, add_rows, as_columns
from mmguard.tools.storage.files import FILES, Files

#: A label file is a few kilobytes.
_LARGEST = 64 << 20


class TextsRead(NamedTuple):
    """What one task found.

    Attributes:
        items (int): How many it read.
        columns (np.ndarray): The rows, see :mod:`mmguard.tools.scan.yolo.rows`.
        refused (dict[str, Examples]), refused_in (set[int]): As in ``TextRows``.
        faults (dict[str, Examples]): What is wrong with a file -> (its place, whether it is the image).
        faulty (set): The same of every such file.
    """

    items: int
    columns: np.ndarray
    refused: Dict[str, Examples]
    refused_in: Set[int]
    faults: Dict[str, Examples]
    faulty: Set[Tuple[int, bool]]


@dataclass(frozen=True)
class TextSettings:
    """What the engine hands to a process together with label files, as ``MapSettings`` with label maps.

    Args:
        kpt_shape (tuple, optional): As data.yaml says.
    """

    kpt_shape: Optional[Tuple[int, int]] = None
    files: Files = field(default=FILES, compare=False, repr=False)  # it takes along what reads URLs elsewhere

    def scan(self, items: List[TextItem]) -> TextsRead:
        """One task: reads some label files, and looks at their images."""
        found = TextRows([], {}, set())
        faults: Dict[str, Examples] = {}
        faulty: Set[Tuple[int, bool]] = set()
        texts = self.files.readers([item.path for item in items if item.path], _read)
        images = image_faults([item.image for item in items if item.image])
        for number, path, image in items:
            for why, of_image in (
                (self._add(next(texts), number, found) if path else '', False),
                (next(images) if image else '', True),
            ):
                if why:
                    faults.setdefault(why, Examples(NAMED)).add((number, of_image))
                    faulty.add((number, of_image))
        return TextsRead(len(items), as_columns(found.rows), found.refused, found.refused_in, faults, faulty)

    def crashed(self, item: TextItem) -> TextsRead:
        """Of a file that ended the process that read it."""
        one = Examples(NAMED)
        one.add((item.number, not item.path))
        return TextsRead(1, as_columns([]), {}, set(), {f'cannot be read: {CRASHES}': one}, set(one.first))

    def _add(self, read: Callable[[], bytes], number: int, into: TextRows) -> str:
        try:
            text = read()
        except (OSError, ValueError) as error:
            return f'cannot be read: {getattr(error, "strerror", None) or error}'
        if len(text) > _LARGEST:
            return f'is larger than {_LARGEST >> 20} MiB'
        add_rows(text, number, self.kpt_shape, into)
        return ''


def _read(path: str) -> bytes:
    with open_regular(path) as file:
        return file.read(_LARGEST + 1)
