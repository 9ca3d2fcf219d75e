"""Reader of the files of a run: it reads log lines, sums them by mode, and adds up the records of all ranks."""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, Type, TypeVar

from mmguard.errors import CannotRun
from mmguard.files.plain_data import NotJson, Rank, decode, parse_object
from mmguard.files.regular import open_regular
from mmguard.labels.instances import LABEL_REASON
from mmguard.labels.spaces import LabelSpaces, from_record
from mmguard.labels.tally import UNKNOWN, Tally
from mmguard.log.run_log import FLIGHT, NAME, RECORD_FORMAT, ModeStats
from mmguard.log.statistics import KINDS, LossRecord, Stats, tally_losses
from mmguard.text import quantity, shorten_list

T = TypeVar('T')

#: Limit of a line and of a record, in bytes; hooks write shorter ones.
_LONGEST = 1 << 25
#: Number of records that are named individually; a damaged disk may have many.
_NAMED = 10


@dataclass
class UnreadParts:
    """Parts of files that could not be understood, and are left out."""

    records: int = 0  #: Number of lines, or of parts of a file that is a single JSON object.
    first: List[str] = field(default_factory=list)  #: Messages ``file:line is left out: reason`` of the first parts.
    #: Files whose last line is incomplete, because the training was killed or still runs.
    cut_off: List[str] = field(default_factory=list)

    def add(self, place: str, reason: object) -> None:
        """Count a record that is left out, and keep the reason if it is one of the first records."""
        self.records += 1
        if self.records <= _NAMED:
            self.first.append(f'{place} is left out: {reason}')

    def list_messages(self) -> List[str]:
        """Return one line per problem for the user."""
        more = self.records - len(self.first)
        return [
            *shorten_list([f'{path}: the last line is incomplete and is left out' for path in self.cut_off]),
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
    """A rank on which losses were missing in an iteration and replaced by zeros."""

    rank: Rank
    losses: List[str] = field(default_factory=list)
    samples: List[str] = field(default_factory=list)


@dataclass
class LogLine:
    """Line about an iteration with skipped or remapped labels, as ``Stats.to_line`` writes it."""

    mode: str  #: ``'train'``, ``'val'`` or ``'test'``.
    iter: int  #: The iteration as on the console.
    step: Optional[int] = None  #: In a validation, the iteration of the training.
    total: int = 0
    skipped_pixels: int = 0
    remapped_pixels: int = 0
    total_instances: int = 0
    skipped_instances: int = 0
    remapped_instances: int = 0
    reasons: Dict[str, int] = field(default_factory=dict)
    samples: List[FileTally] = field(default_factory=list)  #: Tallies of single files, from the pipeline.
    loss_samples: List[FileTally] = field(default_factory=list)  #: Tallies of single files, from a loss.
    losses: Dict[str, LossRecord] = field(default_factory=dict)  #: Guarded loss -> its counts.
    empty_images: int = 0  #: Images without any instance.
    filled: List[FilledRank] = field(default_factory=list)  #: Ranks with missing losses; such a line has no counts.

    @property
    def place(self) -> int:
        """The iteration, counted from the start of the training, or in a test from the start of the test."""
        return self.iter if self.step is None else self.step

    def to_stats(self) -> Stats:
        """Return statistics: the sums over the images, and the tallies of single files."""
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
    """Statistics of the lines of one mode; only iterations with skipped or remapped labels have a line."""

    def __init__(self) -> None:
        super().__init__(detailed=None)
        self.first_filled: Dict[int, Tuple[int, List[str]]] = {}
        #: Place, iteration and log -> number of lines, which is more than 1 if several runs write to the log.
        self._times: Counter = Counter()
        self._last: Dict[Tuple[str, Optional[str]], Tally] = {}

    def add_line(self, line: LogLine, log: int = 0) -> None:
        """Add a log line; ``log`` is the number of its file (one file per rank)."""
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
        """Return the tally of a file, with the values of the file's previous line if its own line has no values."""
        count, before = tally.skipped + tally.remapped, self._last.get((kind, tally.source))
        if count and not (tally.values or tally.reasons or tally.other_values):
            if before is None:  # the previous line is missing
                tally.other_values = count
            else:
                is_single = len(before.values) == 1
                tally.values = dict.fromkeys(before.values, count) if is_single else before.values
                tally.reasons = {LABEL_REASON: count} if before.reasons else {}
                tally.other_values = before.other_values
        self._last[kind, tally.source] = tally
        return tally

    def count_iterations(self) -> int:
        """Return the number of iterations with skipped or remapped labels; each counts once over all ranks."""
        most: Dict[Tuple[int, int], int] = {}
        for (place, number, _), times in self._times.items():
            most[place, number] = max(most.get((place, number), 0), times)
        return sum(most.values())

    def totals(self, loops: Optional[Stats] = None) -> Stats:
        """Return the sums of the lines; the totals of iterations and files are 0, because no line has them."""
        return replace(super().totals(loops), files=0, offending_iterations=self.count_iterations())


def sum_lines(*logs: Iterable[LogLine]) -> Dict[str, LoggedStats]:
    """Return the sums over the logs of all ranks as {mode: sums}, in the order in which the modes appear."""
    modes: Dict[str, LoggedStats] = {}
    for number, lines in enumerate(logs):
        for line in lines:
            modes.setdefault(line.mode, LoggedStats()).add_line(line, number)
    return modes


class NotALog(CannotRun):
    """Error if a path has no log of mmguard; the message is for the user."""


@dataclass
class RunFiles:
    """Files of one run; rank 0 comes first in each list."""

    folder: Path  #: The folder of the files.
    logs: List[Path] = field(default_factory=list)  #: ``label_guard.jsonl``, ``label_guard.rank1.jsonl``, ...
    records: List[Path] = field(default_factory=list)  #: ``label_guard.json``, ...
    crashes: List[Path] = field(default_factory=list)  #: ``label_guard_flight.jsonl``, ...


def find_run(target: Path) -> RunFiles:
    """Return all files of the run that a file (log, record, flight record) belongs to, or of a folder's newest run.

    Raises:
        NotALog: Nothing was found.
    """
    if target.is_dir():
        return _find_newest(target)
    if not target.is_file():  # a pipe can only be read once
        raise NotALog(f'{target}: no such file or folder')
    folder, content = target.parent, _detect_content(target)
    crash = _strip_rank(target) if content == 'crash' else folder / FLIGHT
    log = {'log': target, 'record': _strip_rank(target).with_suffix('.jsonl')}.get(content, folder / NAME)
    record = log.with_suffix('.json')  # earlier versions could give both another name
    return RunFiles(folder, _find_ranks(log), _find_ranks(record), _find_ranks(crash))


def _find_newest(folder: Path) -> RunFiles:
    # The files of every rank count: rank 0 may have no invalid label, and so no log.
    runs: Dict[Path, RunFiles] = {}
    age: Dict[Path, float] = {}
    # The renamed files of an earlier run end in .old.
    paths = (path for path in folder.rglob('label_guard*.json*') if path.suffix in ('.json', '.jsonl'))
    for path in sorted(path for path in paths if path.is_file()):
        run = runs.setdefault(path.parent, RunFiles(path.parent))
        is_flight = path.name.startswith(Path(FLIGHT).stem)
        files = run.crashes if is_flight else run.logs if path.suffix == '.jsonl' else run.records
        files.append(path)
        age[path.parent] = max(age.get(path.parent, 0.0), path.stat().st_mtime)
    if not runs:
        raise NotALog(
            f'{folder}: no log of mmguard in or below this folder. LabelGuardHook writes label_guard.json '
            f"and {NAME} into the run's log folder (work_dirs/CONFIG/DATE_TIME), FlightRecorderHook {FLIGHT}"
        )
    return runs[max(runs, key=lambda run: (age[run], str(run)))]


def _detect_content(path: Path) -> str:
    """Return ``'crash'``, ``'record'`` or ``'log'``, judged by the first line of a file, or else by the whole file."""
    with contextlib.suppress(OSError), open_regular(path) as file:  # the reader of logs reports what cannot be read
        for read in (file.readline, file.read):
            file.seek(0)
            with contextlib.suppress(ValueError):
                content = parse_object(read(_LONGEST))
                if 'capacity' in content:
                    return 'crash'
                return 'record' if 'runs' in content else 'log'
    return 'log'


def _strip_rank(path: Path) -> Path:
    """Return ``a.json`` for ``a.rank3.json``."""
    stem, _, rank = path.stem.rpartition('.rank')
    return path.with_name(f'{stem}{path.suffix}') if stem and rank.isdigit() else path


def _find_ranks(first: Path) -> List[Path]:
    """Return the existing files of all ranks, ``a.json``, ``a.rank1.json``, ``a.rank2.json``, ..., given ``a.json``."""
    ranks = {_parse_rank(path, first): path for path in first.parent.glob('*')}
    found = [ranks[rank] for rank in sorted(rank for rank in ranks if rank is not None)]
    return [path for path in (first, *found) if path.is_file()]


def _parse_rank(path: Path, first: Path) -> Optional[int]:
    """Return 1 for ``a.rank1.json`` if ``first`` is ``a.json``, or ``None`` for a file of another name."""
    start, end = f'{first.stem}.rank', first.suffix
    number = path.name[len(start) : len(path.name) - len(end)]
    fits = path.name.startswith(start) and path.name.endswith(end) and number.isascii() and number.isdigit()
    return int(number) if fits else None


@dataclass
class LoggedMode:
    """Record of one mode of a run, over all ranks."""

    totals: Stats = field(default_factory=Stats)  #: Sums over all iterations, loops and ranks.
    ended: bool = True  #: True if each rank closed its record, so that no iteration is missing.
    place: int = 0  #: The last counted iteration.
    record: Dict[str, Any] = field(default_factory=dict)  #: Entry of the mode in the first rank's record.
    #: For each run in that record: last iteration of a loop (of the training, for a validation) -> its iterations.
    loops: List[Dict[int, int]] = field(default_factory=list)

    @property
    def spaces(self) -> LabelSpaces:
        """Valid labels, from the guards, or from a loss that found invalid labels."""
        return from_record(self.record, [name for name, count in self.totals.losses.items() if count])

    @property
    def data_roots(self) -> List[str]:
        roots = self.record.get('data_roots')
        return [str(root) for root in roots] if isinstance(roots, list) else []


@dataclass
class LoggedRun:
    """Records of a run, summed over its ranks."""

    modes: Dict[str, LoggedMode] = field(default_factory=lambda: defaultdict(LoggedMode))  #: Mode -> its record.
    ranks: int = 0  #: Number of ranks that left a record.
    world_size: int = 0  #: Number of ranks; 0 if unknown.
    framework: str = ''  #: ``'openmmlab'``, ``'pytorch'`` (an own loop) or ``'nnunet'``; empty if unknown.
    problems: List[str] = field(default_factory=list)  #: Unreadable records, and the reasons.


@dataclass
class _RecordJson:
    """Content of ``label_guard.json``."""

    format: int
    runs: List[Any]


@dataclass
class _RunJson:
    """A run in a record file."""

    modes: Dict[str, Dict[str, Any]]
    framework: str = ''
    world_size: Optional[Rank] = None


@dataclass
class _ModeJson:
    """A mode of a run; ``from_record`` reads its valid labels."""

    totals: Dict[str, Any]
    ended: bool = False
    iter: int = 0
    step: Optional[int] = None
    loops: Dict[int, int] = field(default_factory=dict)


def read_run(paths: Sequence[Path]) -> LoggedRun:
    """Add up the records of all ranks. Unreadable records do not raise an error: ``problems`` lists them."""
    run, unread = LoggedRun(), UnreadParts()
    for path in paths:
        try:
            record = _read(path)
        except (OSError, ValueError) as error:
            unread.add(str(path), error)
            continue
        run.ranks += 1
        for number, part in enumerate(record.runs):
            try:
                _add(run, part)
            except ValueError as error:
                unread.add(f'{path}: runs[{number}]', error)
    for mode in run.modes.values():
        if run.ranks > 1:
            mode.totals.files = 0  # several ranks have seen the same files
    run.problems = unread.list_messages()
    return run


def _read(path: Path) -> _RecordJson:
    with open_regular(path) as file:
        record = decode(_RecordJson, parse_object(file.read(_LONGEST)))
    if record.format != RECORD_FORMAT:
        raise ValueError(f'expected format {RECORD_FORMAT}, got {record.format}')
    return record


def _add(run: LoggedRun, record: Any) -> None:
    # Everything is read before anything is added.
    part = decode(_RunJson, record)
    modes = {mode: decode(_ModeJson, record) for mode, record in part.modes.items()}
    totals = {mode: Stats.from_json(read.totals) for mode, read in modes.items()}
    run.framework = part.framework or run.framework
    run.world_size = max(run.world_size, part.world_size or 0)
    for mode, read in modes.items():
        known = run.modes.setdefault(mode, LoggedMode(record=part.modes[mode]))
        known.totals = known.totals + totals[mode]
        known.ended = known.ended and read.ended
        place = read.iter if read.step is None else read.step
        known.place = max(known.place, place)
        if run.ranks == 1:
            # nnU-Net and TallyLog count all validations as one loop.
            whole = {} if mode == 'val' else {place: totals[mode].iterations}
            known.loops.append(read.loops if read.loops and part.framework == 'openmmlab' else whole)
