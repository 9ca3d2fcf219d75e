"""The label files of a loop: the counts of each, the values of the worst."""

from __future__ import annotations

import heapq
from array import array
from typing import Dict, Iterator, List, Tuple

import numpy as np

from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.tally import Tally
from mmguard.log.totals import KINDS

#: Files whose values are kept, at least: those with the most invalid labels.
DETAILED = 1000
_CLEAN = -1


class FilesSeen:
    """Counts of every file that was seen; a million offending files take less than 200 MB.

    The values of a file that is far from the worst are forgotten first; names and counts stay.
    """

    def __init__(self) -> None:
        #: Folder -> name in it -> place in the arrays below; most files are clean and have none.
        self._places: Dict[str, Dict[str, int]] = {}
        self._offending = 0
        self._counts = {kind: (array('q'), array('q')) for kind in KINDS}  # skipped, remapped
        self._details: Dict[str, Dict[str, Tally]] = {kind: {} for kind in KINDS}
        #: A hash of what was found last in each file.
        self._said = {kind: array('q') for kind in KINDS}

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    @property
    def offending(self) -> int:
        """How many had something skipped or remapped."""
        return self._offending

    def see(self, name: str) -> None:
        folder, base = _split(name)
        self._places.setdefault(folder, {}).setdefault(base, _CLEAN)

    def add(self, kind: str, tally: Tally) -> None:
        """Adds what was skipped or remapped in a file, ``tally.source``."""
        name = str(tally.source)
        place = self._place_of(name)
        for column, count in zip(self._counts[kind], (tally.skipped, tally.remapped)):
            if count:
                _lengthen(column, place)
                column[place] += count
        details = self._details[kind]
        known = details.get(name)
        details[name] = tally if known is None else known + tally
        if len(details) > 2 * DETAILED:
            self._forget(kind)

    def repeats(self, kind: str, tally: Tally) -> bool:
        """Whether a file offends as it did when this was asked last, so that the log needs its counts alone.

        Each value came as often as then; or there is one value, whose count the sums give.
        """
        said, place = self._said[kind], self._place_of(str(tally.source))
        _lengthen(said, place)
        before = said[place]
        counts = tuple(tally.values) if len(tally.values) == 1 and not tally.other_values else (*tally.values.items(),)
        said[place] = 0 if tally.reasons.keys() - {LABEL_REASON} else hash((counts, tally.other_values))
        return before == said[place] != 0

    def worst(self, kind: str, number: int) -> List[Tally]:
        """The files with the most skipped or remapped elements, those of the same number by name."""
        changed = self._changed(kind)
        found = ((-changed[place], name) for name, place in self._all() if place != _CLEAN and changed[place])
        return [self._tally(kind, name) for _, name in heapq.nsmallest(number, found)]

    def number(self, kind: str) -> int:
        """How many files had something of that kind skipped or remapped."""
        return int(np.count_nonzero(self._changed(kind)))

    def merge(self, other: FilesSeen) -> None:
        """Counts the files of a later loop: which were seen, and which offended."""
        for name, place in other._all():
            self.see(name)
            if place != _CLEAN:
                self._place_of(name)

    def _place_of(self, name: str) -> int:
        """The place of a file that offends."""
        folder, base = _split(name)
        places = self._places.setdefault(folder, {})
        place = places.get(base, _CLEAN)
        if place == _CLEAN:
            place = places[base] = self._offending
            self._offending += 1
        return place

    def _all(self) -> Iterator[Tuple[str, int]]:
        """Every file and its place."""
        for folder, places in self._places.items():
            for base, place in places.items():
                yield folder + base, place

    def _changed(self, kind: str) -> np.ndarray:
        """What was skipped or remapped, by place."""
        changed = np.zeros(self._offending, dtype=np.int64)
        for column in self._counts[kind]:
            changed[: len(column)] += np.array(column, dtype=np.int64)
        return changed

    def _tally(self, kind: str, name: str) -> Tally:
        skipped, remapped = self._of(kind, name)
        detail = self._details[kind].get(name, Tally())
        # What was counted before its values were forgotten.
        unknown = skipped + remapped - detail.skipped - detail.remapped
        return Tally(
            detail.total,
            skipped,
            remapped,
            detail.values,
            name,
            detail.reasons,
            other_values=detail.other_values + unknown,
        )

    def _forget(self, kind: str) -> None:
        details = self._details[kind]
        ranked = sorted(details, key=lambda name: -sum(self._of(kind, name)))
        for name in ranked[DETAILED:]:
            del details[name]

    def _of(self, kind: str, name: str) -> List[int]:
        place = self._place_of(name)
        return [column[place] if place < len(column) else 0 for column in self._counts[kind]]


def _split(name: str) -> Tuple[str, str]:
    """A folder with its slash, which many files share, and what is behind it."""
    end = name.rfind('/') + 1
    return name[:end], name[end:]


def _lengthen(column: array[int], place: int) -> None:
    """Appends zeros up to a place."""
    if len(column) <= place:
        column.frombytes(bytes(8 * (place + 1 - len(column))))
