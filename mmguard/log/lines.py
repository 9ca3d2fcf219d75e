"""Reader of ``label_guard.jsonl``: its lines, and their sums by mode."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO, Dict, Iterable, Iterator, List, Optional, Tuple, Type, TypeVar

from mmguard.files.plain_data import NotJson, Rank, decode, parse_object
from mmguard.files.regular import open_regular
from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.tally import UNKNOWN, Tally
from mmguard.log.statistics import KINDS, LossRecord, ModeStats, Stats, tally_losses
from mmguard.text import quantity, shorten_list

T = TypeVar('T')

#: Limit of a line, in bytes; hooks write shorter ones.
_LONGEST = 1 << 25
#: Number of records that are named individually; a damaged disk may have many.
_NAMED = 10


@dataclass
class UnreadParts:
    """Parts of files that could not be understood, and are left out."""

    records: int = 0  #: Number of lines, or parts of a file that is one object.
    first: List[str] = field(default_factory=list)  #: ``file:line is left out: why`` of the first ones.
    #: Files whose last line ends in the middle: the training was killed, or still runs.
    cut_off: List[str] = field(default_factory=list)

    def add(self, place: str, reason: object) -> None:
        """Count a record that is left out, and keep the reason of the first ones."""
        self.records += 1
        if self.records <= _NAMED:
            self.first.append(f'{place} is left out: {reason}')

    def list_messages(self) -> List[str]:
        """Return one line per problem for the user."""
        more = self.records - len(self.first)
        return [
            *shorten_list([f'{path}: its last line ends in the middle and is left out' for path in self.cut_off]),
            *self.first,
            *([f'... and {quantity(more, "more record is", "more records are")} left out'] if more else []),
        ]


def read_lines(file: BinaryIO, path: str, kind: Type[T], unread: UnreadParts) -> Iterator[T]:
    """Yield the lines of a file as records of a type; add malformed ones to ``unread``."""
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST), b''), start=1):
        # A file that reached its limit ends with a note.
        if line.isspace() or line.startswith(b'{"note"'):
            continue
        try:
            yield decode(kind, parse_object(line))
        except ValueError as error:
            if isinstance(error, NotJson) and not line.endswith(b'\n') and len(line) < _LONGEST:
                unread.cut_off.append(path)
            else:
                unread.add(f'{path}:{number}', error)


@dataclass
class FileTally(Tally):
    """Tally of a file in a log line; a log of another version may have a ``kind`` that is unknown here."""

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
class LogLine:
    """One iteration that had something skipped or remapped, as ``Stats.to_line`` writes it.

    Args:
        mode (str): ``'train'``, ``'val'`` or ``'test'``.
        iter (int): The iteration as the console counts.
        step (int, optional): For a validation: the iteration of the training.
        samples, loss_samples (list[FileTally]): Tallies of single files, from the pipeline or from a loss.
        losses (dict[str, LossRecord]): Guarded loss -> its counts.
        empty_images (int): Images without any instance.
        filled (list[FilledRank]): Ranks that lacked losses; a line with them has no counts.
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
    samples: List[FileTally] = field(default_factory=list)
    loss_samples: List[FileTally] = field(default_factory=list)
    losses: Dict[str, LossRecord] = field(default_factory=dict)
    empty_images: int = 0
    filled: List[FilledRank] = field(default_factory=list)

    @property
    def place(self) -> int:
        """The iteration since the start of the training; in a test, the iteration of the test."""
        return self.iter if self.step is None else self.step

    def to_stats(self) -> Stats:
        """Return the sums over the images, and the tallies of single files."""
        pixels = Tally(self.total, self.skipped_pixels, self.remapped_pixels)
        skipped, remapped = self.skipped_instances, self.remapped_instances
        instances = Tally(self.total_instances, skipped, remapped, reasons=self.reasons)
        return Stats(
            kinds={'pixels': pixels, 'instances': instances},
            losses=tally_losses(self.losses),
            empty_images=self.empty_images,
            offending={kind: _select_tallies(self.samples, kind) for kind in KINDS},
            loss_samples={kind: _select_tallies(self.loss_samples, kind) for kind in KINDS},
        )


def _select_tallies(files: List[FileTally], kind: str) -> List[Tally]:
    return [Tally() + file for file in files if file.kind == kind]


def read_logs(paths: List[Path], unread: UnreadParts) -> Iterator[LogLine]:
    """Yield the lines of all files, one file after another; add malformed ones to ``unread``."""
    for path in paths:
        try:
            with open_regular(path) as file:
                yield from read_lines(file, str(path), LogLine, unread)
        except OSError as error:
            unread.add(str(path), error.strerror or error)


class LoggedStats(ModeStats):
    """Statistics of the lines of one mode, in which only iterations with something skipped or remapped are logged.

    Attributes:
        first_filled (dict[int, tuple]): Rank -> the place where it first lacked a loss, and its samples there.
    """

    def __init__(self) -> None:
        super().__init__(detailed=None)
        self.first_filled: Dict[int, Tuple[int, List[str]]] = {}
        #: Place, iteration and log -> lines; those of several runs follow each other.
        self._times: Counter = Counter()
        self._last: Dict[Tuple[str, Optional[str]], Tally] = {}

    def add_line(self, line: LogLine, log: int = 0) -> None:
        """Add an iteration of one rank, from the log with that number."""
        for filled in line.filled:
            self.first_filled.setdefault(filled.rank, (line.place, filled.samples))
            self.sums.add_filled_losses(filled.rank, filled.losses)
        if line.filled:
            return
        self._times[line.place, line.iter, log] += 1
        stats = line.to_stats()
        for images in (stats.offending, stats.loss_samples):
            for kind, tallies in images.items():
                images[kind] = [self._restore_values(kind, tally) for tally in tallies]
        self.add(stats, {'iter': line.iter})

    def _restore_values(self, kind: str, tally: Tally) -> Tally:
        """Return the tally of a file; one logged without values gets those of its previous line."""
        count, before = tally.skipped + tally.remapped, self._last.get((kind, tally.source))
        if count and not (tally.values or tally.reasons or tally.other_values):
            if before is None:  # that line is missing
                tally.other_values = count
            else:
                is_single = len(before.values) == 1
                tally.values = dict.fromkeys(before.values, count) if is_single else before.values
                tally.reasons = {LABEL_REASON: count} if before.reasons else {}
                tally.other_values = before.other_values
        self._last[kind, tally.source] = tally
        return tally

    def count_iterations(self) -> int:
        """Return the number of iterations with anything skipped or remapped; each counts once over all ranks."""
        most: Dict[Tuple[int, int], int] = {}
        for (place, number, _), times in self._times.items():
            most[place, number] = max(most.get((place, number), 0), times)
        return sum(most.values())

    def totals(self, loops: Optional[Stats] = None) -> Stats:
        """Return the sums of the lines; the numbers of all iterations and files are unknown."""
        return replace(super().totals(loops), files=0, offending_iterations=self.count_iterations())


def sum_lines(*logs: Iterable[LogLine]) -> Dict[str, LoggedStats]:
    """Return mode -> the sums over the logs of all ranks, in the order in which the modes appear."""
    modes: Dict[str, LoggedStats] = {}
    for number, lines in enumerate(logs):
        for line in lines:
            modes.setdefault(line.mode, LoggedStats()).add_line(line, number)
    return modes
