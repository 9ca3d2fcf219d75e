"""Statistics of a loop: totals, and the counts of every label file."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.samples import UNKNOWN, path_of, relative_to, source_of
from mmguard.labels.tally import Tally
from mmguard.log.iteration_stats import KINDS, SCALARS, SEEN, IterationStats, LoopTotals

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement


#: Files whose values are kept, at least: those with the most invalid labels.
DETAILED = 1000

_CLEAN = -1


class PerFileStats:
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

    def merge(self, other: PerFileStats) -> None:
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


@dataclass
class LoopStats:
    """A whole loop: totals, and every file with its counts.

    Args:
        roots (list[str]): Data roots; files are named relative to them.
        pending (IterationStats, optional): What was seen since the last report; not yet in the numbers below.
    """

    roots: List[str] = field(default_factory=list)
    pending: Optional[IterationStats] = None
    #: What was reported so far, without the number of files.
    sums: LoopTotals = field(default_factory=LoopTotals)
    files: PerFileStats = field(default_factory=PerFileStats)
    #: The running sums over all ranks, in the order of ``LoopTotals.vector``.
    everywhere: List[int] = field(default_factory=lambda: [0] * (len(SCALARS) + len(SEEN)))

    def see(self, samples: Iterable[BaseDataElement]) -> IterationStats:
        """Makes the span of one iteration, and remembers its files."""
        samples = list(samples)
        self.see_files(map(source_of, samples))
        return IterationStats.of(samples)

    def see_files(self, sources: Iterable[str]) -> None:
        for source in sources:
            self.files.see(self.shorten(source))

    def add(self, span: IterationStats) -> None:
        """Takes an iteration; it is pending until the next report."""
        if self.pending is None:
            self.pending = span
        else:
            self.pending.add(span)

    def take_pending(self) -> IterationStats:
        """Move what is pending into the sums, and return it."""
        span, self.pending = IterationStats() if self.pending is None else self.pending, None
        self.sums += span.totals()
        for kind in KINDS:
            for tally in span.offending[kind] + span.loss_samples[kind]:
                self.files.add(kind, self.named(tally))
                self.sums.kinds[kind] += Tally(values=tally.values, other_values=tally.other_values)
        return span

    def add_everywhere(self, numbers: Sequence[int]) -> None:
        """Add the sums over all ranks of a ``LoopTotals.vector``; skip one of another version's checkpoint."""
        if len(numbers) == len(self.everywhere):
            self.everywhere = [a + b for a, b in zip(self.everywhere, numbers)]

    def shorten(self, source: str) -> str:
        return relative_to(source, self.roots)

    def named(self, tally: Tally) -> Tally:
        """A tally under the name of its file here."""
        return replace(tally, source=UNKNOWN if tally.source is None else self.shorten(str(tally.source)))

    def repeats(self, kind: str, tally: Tally) -> bool:
        """Whether a file offends as it did before."""
        return self.files.repeats(kind, self.named(tally))

    def worst(self, kind: str, number: int) -> List[Tally]:
        """Return the files with the most skipped or remapped elements, under paths that an editor can open."""
        found = self.files.worst(kind, number)
        return [replace(tally, source=path_of(str(tally.source), self.roots)) for tally in found]

    def totals(self) -> LoopTotals:
        """Return the sums of what was reported so far."""
        return replace(self.sums, files=len(self.files), offending_files=self.files.offending)

    def skipped_ratio(self) -> float:
        """The larger of the share of skipped pixels, instances and loss elements, over all ranks."""
        numbers = dict(zip(SCALARS + SEEN, self.everywhere))
        parts = (('skipped_pixels', 'pixels'), ('skipped_instances', 'instances'), ('loss_skipped', 'loss_elements'))
        return max(numbers[part] / numbers[whole] if numbers[whole] else 0.0 for part, whole in parts)
