"""Statistics of a loop: sums, and counts of every label file."""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.samples import UNKNOWN, path_of, relative_to, source_of
from mmguard.labels.tally import Tally
from mmguard.log.statistics import KINDS, SCALARS, SEEN, ByKind, Stats

if TYPE_CHECKING:
    from mmengine.structures import BaseDataElement

#: Minimum number of files whose values are kept: those with the most invalid labels.
DETAILED = 1000

_CLEAN = -1


class PerFileStats:
    """Counts of every file seen; a million offending files take less than 200 MB.

    The values of files far from the worst are dropped first; names and counts stay.
    """

    def __init__(self) -> None:
        #: Folder -> name in it -> index in the arrays below; most files are clean and have none.
        self._indices: Dict[str, Dict[str, int]] = {}
        self._offending = 0
        self._counts = {kind: (array('q'), array('q')) for kind in KINDS}  # skipped, remapped
        self._details: Dict[str, Dict[str, Tally]] = {kind: {} for kind in KINDS}
        #: A hash of the last offence of each file.
        self._last = {kind: array('q') for kind in KINDS}

    def __len__(self) -> int:
        return sum(map(len, self._indices.values()))

    @property
    def offending(self) -> int:
        """Number of files with something skipped or remapped."""
        return self._offending

    def see(self, name: str) -> None:
        folder, base = _split(name)
        self._indices.setdefault(folder, {}).setdefault(base, _CLEAN)

    def add(self, kind: str, tally: Tally) -> bool:
        """Add what was skipped or remapped in a file, ``tally.source``.

        Returns:
            bool: True if the file offends as it did the last time, so that the log only needs its counts: each value
            came as often as then; or there is one value, whose count the sums give.
        """
        name = str(tally.source)
        index = self._assign_index(name)
        for column, count in zip(self._counts[kind], (tally.skipped, tally.remapped)):
            if count:
                _extend_to(column, index)
                column[index] += count
        details = self._details[kind]
        known = details.get(name)
        details[name] = tally if known is None else known + tally
        if len(details) > 2 * DETAILED:
            self._drop_details(kind)
        last, offence = self._last[kind], _hash_offence(tally)
        _extend_to(last, index)
        before, last[index] = last[index], offence
        return before == offence != 0

    def worst(self, kind: str, number: int) -> List[Tally]:
        """Return the files with the most skipped or remapped elements; equal ones by name."""
        sums = self._sum_counts(kind)
        found = ((-sums[index], name) for name, index in self._items() if index != _CLEAN and sums[index])
        return [self._tally(kind, name) for _, name in heapq.nsmallest(number, found)]

    def number(self, kind: str) -> int:
        """Return the number of files with anything of that kind skipped or remapped."""
        return int(np.count_nonzero(self._sum_counts(kind)))

    def merge(self, other: PerFileStats) -> None:
        """Include the files of a later loop, seen or offending, without their counts."""
        for name, index in other._items():
            self.see(name)
            if index != _CLEAN:
                self._assign_index(name)

    def _assign_index(self, name: str) -> int:
        """Return the index of an offending file, assigned on first use."""
        folder, base = _split(name)
        indices = self._indices.setdefault(folder, {})
        if indices.get(base, _CLEAN) == _CLEAN:
            indices[base] = self._offending
            self._offending += 1
        return indices[base]

    def _items(self) -> Iterator[Tuple[str, int]]:
        """Yield every file and its index."""
        for folder, indices in self._indices.items():
            for base, index in indices.items():
                yield folder + base, index

    def _sum_counts(self, kind: str) -> np.ndarray:
        """Return the elements skipped or remapped, by index."""
        sums = np.zeros(self._offending, dtype=np.int64)
        for column in self._counts[kind]:
            sums[: len(column)] += np.array(column, dtype=np.int64)
        return sums

    def _tally(self, kind: str, name: str) -> Tally:
        skipped, remapped = self._counts_of(kind, name)
        detail = self._details[kind].get(name, Tally())
        # Counts from before the values were dropped.
        unknown = skipped + remapped - detail.skipped - detail.remapped
        return replace(
            detail,
            skipped=skipped,
            remapped=remapped,
            source=name,
            mapped=0,
            other_values=detail.other_values + unknown,
        )

    def _drop_details(self, kind: str) -> None:
        details = self._details[kind]
        ranked = sorted(details, key=lambda name: -sum(self._counts_of(kind, name)))
        for name in ranked[DETAILED:]:
            del details[name]

    def _counts_of(self, kind: str, name: str) -> List[int]:
        index = self._assign_index(name)
        return [column[index] if index < len(column) else 0 for column in self._counts[kind]]


def _hash_offence(tally: Tally) -> int:
    """Hash the values of an offence; return 0 for box faults, which the log never abbreviates."""
    if tally.reasons.keys() - {LABEL_REASON}:
        return 0
    is_single = len(tally.values) == 1 and not tally.other_values
    counts: Tuple[Any, ...] = tuple(tally.values) if is_single else (*tally.values.items(),)
    return hash((counts, tally.other_values))


def _split(name: str) -> Tuple[str, str]:
    """Split a name into its folder with the slash, which many files share, and the rest."""
    end = name.rfind('/') + 1
    return name[:end], name[end:]


def _extend_to(column: array[int], index: int) -> None:
    """Append zeros up to an index."""
    if len(column) <= index:
        column.frombytes(bytes(8 * (index + 1 - len(column))))


@dataclass
class LoopStats:
    """Statistics of a loop: sums, counts of every file, and unreported iterations.

    Args:
        roots (list[str]): Data roots; files are named relative to them.
        pending (Stats, optional): Iterations since the last report, not included in the fields below.
    """

    roots: List[str] = field(default_factory=list)
    pending: Optional[Stats] = None
    #: Sums of what was reported, without the number of files.
    sums: Stats = field(default_factory=Stats)
    files: PerFileStats = field(default_factory=PerFileStats)
    #: The running sums over all ranks, in the order of ``Stats.vector``.
    everywhere: List[int] = field(default_factory=lambda: [0] * (len(SCALARS) + len(SEEN)))

    def see(self, samples: Iterable[BaseDataElement]) -> Stats:
        """Compute the statistics of one iteration, and record its files."""
        samples = list(samples)
        self.see_files(map(source_of, samples))
        return Stats.from_samples(samples)

    def see_files(self, sources: Iterable[str]) -> None:
        for source in sources:
            self.files.see(self.shorten(source))

    def add(self, stats: Stats) -> None:
        """Add an iteration, which is pending until the next report."""
        self.pending = stats if self.pending is None else self.pending + stats

    def report(self) -> Tuple[Stats, Dict[str, Any]]:
        """Move the pending statistics into the sums, and return them with their log line, which may be empty."""
        stats, self.pending = Stats() if self.pending is None else self.pending, None
        self.sums += stats.totals()
        if not stats:
            return stats, {}
        found = [self._add_images(images) for images in (stats.offending, stats.loss_samples)]
        return stats, stats.to_line(*found)

    def _add_images(self, tallies: ByKind) -> List[Dict[str, Any]]:
        """Add offending images to their files, and return their entries in the line of the log."""
        entries = []
        for kind in KINDS:
            for tally in tallies[kind]:
                source = UNKNOWN if tally.source is None else self.shorten(str(tally.source))
                repeats = self.files.add(kind, replace(tally, source=source))
                self.sums.kinds[kind] += Tally(values=tally.values, other_values=tally.other_values)
                entry = tally.to_json()
                left_out = ('total', 'mapped', *(('values', 'other_values', 'reasons') if repeats else ()))
                entry = {name: value for name, value in entry.items() if name not in left_out}
                entry['source'] = None if tally.source is None else source
                entries.append({**entry, 'kind': kind} if kind == 'instances' else entry)
        return entries

    def add_everywhere(self, numbers: Sequence[int]) -> None:
        """Add a ``Stats.vector`` summed over all ranks; skip one from a checkpoint of another version."""
        if len(numbers) == len(self.everywhere):
            self.everywhere = [a + b for a, b in zip(self.everywhere, numbers)]

    def shorten(self, source: str) -> str:
        return relative_to(source, self.roots)

    def worst(self, kind: str, number: int) -> List[Tally]:
        """Return the files with the most skipped or remapped elements, with openable paths."""
        found = self.files.worst(kind, number)
        return [replace(tally, source=path_of(str(tally.source), self.roots)) for tally in found]

    def totals(self) -> Stats:
        """Return the sums of all reported iterations."""
        return replace(self.sums, files=len(self.files), offending_files=self.files.offending)

    @property
    def skipped_ratio(self) -> float:
        """Largest share of skipped pixels, instances or loss elements, over all ranks."""
        numbers = dict(zip(SCALARS + SEEN, self.everywhere))
        parts = (('skipped_pixels', 'pixels'), ('skipped_instances', 'instances'), ('loss_skipped', 'loss_elements'))
        return max(numbers[part] / numbers[whole] if numbers[whole] else 0.0 for part, whole in parts)
