"""Reader of ``label_guard.jsonl``: its lines, and their sums by mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Optional, Tuple, Type, TypeVar

from mmguard.files.regular import open_regular
from mmguard.files.typed_json import NotJson, Rank, decoded, parsed
from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.samples import UNKNOWN
from mmguard.labels.tally import Tally
from mmguard.log.iteration_stats import KINDS, LoopTotals, LossCount
from mmguard.log.messages import worst_first
from mmguard.text.words import counted, first_of

T = TypeVar('T')

#: A line of more bytes is none of a hook's.
_LONGEST = 1 << 25
#: Records that are named one by one; of a damaged disk there are many.
_NAMED = 10


@dataclass
class Unread:
    """What of the files could not be understood, and is left out.

    Args:
        records (int): How many lines, or parts of a file that is one object.
        first (list[str]): ``file:line is left out: why`` of the first ones.
        cut_off (list[str]): Files whose last line ends in the middle: the training was killed, or still runs.
    """

    records: int = 0
    first: List[str] = field(default_factory=list)
    cut_off: List[str] = field(default_factory=list)

    def add(self, place: str, why: object) -> None:
        """Leaves a record out."""
        self.records += 1
        if self.records <= _NAMED:
            self.first.append(f'{place} is left out: {why}')

    def decoded(self, kind: Type[T], value: Any, place: str) -> Optional[T]:
        """The record of a type; ``None`` where it is left out."""
        try:
            return decoded(kind, value)
        except ValueError as error:
            self.add(place, error)
            return None

    def words(self) -> List[str]:
        """For the user, a line each."""
        more = self.records - len(self.first)
        return [
            *first_of([f'{path}: its last line ends in the middle and is left out' for path in self.cut_off]),
            *self.first,
            *([f'... and {counted(more, "more record is", "more records are")} left out'] if more else []),
        ]


def read_lines(file: BinaryIO, path: str, kind: Type[T], unread: Unread) -> Iterator[T]:
    """The lines of a file as records of a type; what does not fit is noted in ``unread``."""
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b''), start=1):
        # A file that reached its limit ends with a note.
        if line.isspace() or line.startswith(b'{"note"'):
            continue
        try:
            yield decoded(kind, parsed(line))
        except ValueError as error:
            if isinstance(error, NotJson) and not line.endswith(b'\n') and len(line) < _LONGEST:
                unread.cut_off.append(path)
            else:
                unread.add(f'{path}:{number}', error)


@dataclass
class FoundIn(Tally):
    """What was found in a file; of which ``kind``, another version may know more."""

    kind: str = 'pixels'

    def __post_init__(self) -> None:
        super().__post_init__()
        self.source = self.source or UNKNOWN


@dataclass
class FilledRank:
    """A rank that lacked losses in an iteration, and trained with zeros in their place."""

    rank: Rank
    losses: List[str] = field(default_factory=list)
    samples: List[str] = field(default_factory=list)


@dataclass
class Line:
    """One iteration that had something skipped or remapped, as ``IterationStats.to_json`` writes it.

    Args:
        mode (str): ``'train'``, ``'val'`` or ``'test'``.
        iter (int): As the console counts.
        step (int, optional): Of a validation: the iteration of the training.
        samples, loss_samples (list[FoundIn]): What was found in single files, by the pipeline or by a loss.
        losses (dict[str, LossCount]): Guarded loss -> what it skipped and remapped.
        empty_images (int): Images without any instance.
        filled (list[FilledRank]): Ranks that lacked losses; a line of its own, without any counts.
    """

    mode: str
    iter: int
    step: Optional[int] = None
    total: int = 0
    skipped_pixels: int = 0
    remapped_pixels: int = 0
    total_instances: int = 0
    skipped_instances: int = 0
    remapped_instances: int = 0
    reasons: Dict[str, int] = field(default_factory=dict)
    samples: List[FoundIn] = field(default_factory=list)
    loss_samples: List[FoundIn] = field(default_factory=list)
    losses: Dict[str, LossCount] = field(default_factory=dict)
    empty_images: int = 0
    filled: List[FilledRank] = field(default_factory=list)

    @property
    def place(self) -> int:
        """The iteration since the start of the training; of a test, the iteration."""
        return self.iter if self.step is None else self.step

    def totals(self) -> LoopTotals:
        """Return the sums over the images."""
        pixels = Tally(self.total, self.skipped_pixels, self.remapped_pixels)
        skipped, remapped = self.skipped_instances, self.remapped_instances
        instances = Tally(self.total_instances, skipped, remapped, reasons=self.reasons)
        kinds = {'pixels': pixels, 'instances': instances}
        return LoopTotals(kinds=kinds, losses=self.losses, empty_images=self.empty_images)

    def found(self, kind: str) -> List[FoundIn]:
        """In single files."""
        return [sample for sample in (*self.samples, *self.loss_samples) if sample.kind == kind]


def read_logs(paths: List[Path], unread: Unread) -> Iterator[Line]:
    """The lines of all files, one after the other; what cannot be understood is noted in ``unread``."""
    for path in paths:
        try:
            with open_regular(path) as file:
                yield from read_lines(file, str(path), Line, unread)
        except OSError as error:
            unread.add(str(path), error.strerror or error)


@dataclass
class ModeTotals:
    """One mode of a training.

    Args:
        times (Counter): Place, iteration and log -> lines. A log holds iterations with something skipped or remapped
            alone; those of several runs stand in it one after the other.
        sums (LoopTotals): Of those iterations.
        files (dict[str, dict[str, Tally]]): Kind -> file -> its counts, over all times that it was seen.
        first_filled (dict[int, tuple]): Rank -> where that was first, and its samples there.
    """

    times: Counter = field(default_factory=Counter)
    sums: LoopTotals = field(default_factory=LoopTotals)
    files: Dict[str, Dict[str, Tally]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
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
            self.first_filled.setdefault(filled.rank, (line.place, filled.samples))
            self.sums.fill(filled.rank, filled.losses)
        if line.filled:
            return
        self.times[line.place, line.iter, log] += 1
        self.sums += line.totals()
        for kind in KINDS:
            for logged in line.found(kind):
                source = str(logged.source)
                found = self._said[kind, source] = _as_said(logged, self._said.get((kind, source)))
                seen = self.files[kind].get(source)
                self.files[kind][source] = found if seen is None else seen + found

    def worst(self, kind: str) -> List[Tally]:
        """Its files, the one with the most skipped or remapped elements first."""
        return worst_first(self.files[kind].values())

    def totals(self) -> LoopTotals:
        """Return the sums of what the lines say, which is not how many iterations and files there were."""
        offending = {source for files in self.files.values() for source in files}
        return replace(self.sums, offending_iterations=self.iterations, offending_files=len(offending))

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
