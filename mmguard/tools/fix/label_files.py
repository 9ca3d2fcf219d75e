"""The label files of a target that are to be corrected, and what one has become."""

from __future__ import annotations

import os
from typing import Callable, Dict, FrozenSet, Iterator, List, NamedTuple, Tuple


class Corrected(NamedTuple):
    """A corrected file.

    Attributes:
        data (bytes): Its content; that of the original where nothing was to do.
        ending (str): Of its name.
        changes (list[str]): What was done to it, in words; empty: nothing.
        values (dict[str, int]): Value as stored -> how many elements were changed because of it.
        counts (dict[str, int]): What was skipped, remapped, ...
    """

    data: bytes
    ending: str
    changes: List[str]
    values: Dict[str, int]
    counts: Dict[str, int]


class LabelFiles(NamedTuple):
    """The files of a copy.

    Attributes:
        files (list[tuple[str, str]]): Path and name in the copy of each.
        correct (callable): Corrects one, of its content and its name.
        images (frozenset[str]): The names that are put beside as they are.
    """

    files: List[Tuple[str, str]]
    correct: Callable[[bytes, str], Corrected]
    images: FrozenSet[str] = frozenset()


def unchanged(data: bytes, name: str) -> Corrected:
    return Corrected(data, ending_of(name), [], {}, {})


def ending_of(name: str) -> str:
    return os.path.splitext(name)[1]


def names_below(folder: str) -> Iterator[str]:
    """The names of all files in a folder and those in it, relative to it."""
    for place, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(place, name), folder)
