"""What a whole training skipped, from the lines of its log."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Dict, Iterable, List, Optional, Tuple

from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.tally import Tally
from mmguard.log.lines import FilledRank, Line
from mmguard.log.totals import KINDS, LoopTotals, LossCount
from mmguard.log.wording import worst_first


@dataclass
class ModeTotals:
    """One mode of a training.

    Args:
        times (Counter): Place, iteration and log -> lines. A log holds iterations with something skipped or remapped
            alone; those of several runs stand in it one after the other.
        kinds (dict[str, Tally]): Kind -> sum over those iterations.
        files (dict[str, dict[str, Tally]]): Kind -> file -> its counts, over all times that it was seen.
        losses (dict[str, LossCount]): Guarded loss -> its counts.
        empty_images (int): Images seen without any instance.
        filled (dict[str, dict[str, int]]): Loss -> rank -> iterations in which it was filled with zeros.
        first_filled (dict[int, tuple]): Rank -> where that was first, and its samples there.
    """

    times: Counter = field(default_factory=Counter)
    kinds: Dict[str, Tally] = field(default_factory=lambda: {kind: Tally() for kind in KINDS})
    files: Dict[str, Dict[str, Tally]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    losses: Dict[str, LossCount] = field(default_factory=dict)
    empty_images: int = 0
    filled: Dict[str, Dict[str, int]] = field(default_factory=dict)
    first_filled: Dict[int, Tuple[int, List[str]]] = field(default_factory=dict)
    _said: Dict[Tuple[str, str], Tally] = field(default_factory=dict, repr=False)

    @property
    def iterations(self) -> int:
        """Those with something skipped or remapped; one of several ranks is one."""
        most: Dict[Tuple[int, int], int] = {}
        for (place, number, _), times in self.times.items():
            most[place, number] = max(most.get((place, number), 0), times)
        return sum(most.values())

    def add(self, line: Line, log: int = 0) -> None:
        """Adds an iteration of one rank, from the log of that number."""
        for filled in line.filled:
            self._fill(line.place, filled)
        if line.filled:
            return
        self.times[line.place, line.iter, log] += 1
        self.empty_images += line.empty_images
        for kind, tally in line.kinds.items():
            self.kinds[kind] = self.kinds[kind] + tally
            for logged in line.found(kind):
                source = str(logged.source)
                found = self._said[kind, source] = _as_said(logged, self._said.get((kind, source)))
                seen = self.files[kind].get(source)
                self.files[kind][source] = found if seen is None else seen + found
        for name, count in line.losses.items():
            self.losses[name] = self.losses.get(name, LossCount()) + count

    def _fill(self, place: int, filled: FilledRank) -> None:
        self.first_filled.setdefault(filled.rank, (place, filled.samples))
        for name in filled.losses:
            by_rank = self.filled.setdefault(name, {})
            by_rank[str(filled.rank)] = by_rank.get(str(filled.rank), 0) + 1

    def worst(self, kind: str) -> List[Tally]:
        """Its files, the one with the most skipped or remapped elements first."""
        return worst_first(self.files[kind].values())

    def totals(self) -> LoopTotals:
        """The sums of what the lines say; how many iterations and files there were in all they do not say."""
        return LoopTotals(
            offending_iterations=self.iterations,
            offending_files=len({source for files in self.files.values() for source in files}),
            kinds=dict(self.kinds),
            losses=dict(self.losses),
            empty_images=self.empty_images,
            filled=self.filled,
        )

    def over_all_files(self, kind: str) -> Tally:
        # Not sum(): adding copies the values, at every file anew.
        values: Counter = Counter()
        reasons: Counter = Counter()
        for tally in self.files[kind].values():
            values.update(tally.values)
            reasons.update(tally.reasons)
        others = sum(tally.other_values for tally in self.files[kind].values())
        return Tally(values=dict(values), reasons=dict(reasons), other_values=others)


def values_of(kind: str, in_all: LoopTotals, lines: ModeTotals) -> Tally:
    """The values and box faults of a mode: as its record says, else as its lines do."""
    return in_all.kinds[kind] if in_all.kinds[kind].values else lines.over_all_files(kind)


def _as_said(found: Tally, before: Optional[Tally]) -> Tally:
    """What was found in a file; one that is logged with its counts alone offended as it did the time before."""
    count = found.skipped + found.remapped
    if found.values or found.reasons or found.other_values or not count:
        return found
    if before is None:  # that line is missing
        return replace(found, other_values=count)
    values = dict.fromkeys(before.values, count) if len(before.values) == 1 else before.values
    reasons = {LABEL_REASON: count} if before.reasons else {}
    return replace(found, values=values, reasons=reasons, other_values=before.other_values)


def totals_of(*logs: Iterable[Line]) -> Dict[str, ModeTotals]:
    """Mode -> its totals over the logs of all ranks, in the order in which the modes appear."""
    totals: Dict[str, ModeTotals] = {}
    for number, lines in enumerate(logs):
        for line in lines:
            if line.mode not in totals:
                totals[line.mode] = ModeTotals()
            totals[line.mode].add(line, number)
    return totals
