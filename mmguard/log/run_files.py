"""Files of a run written by mmguard's hooks: discovery, and the reader of their records."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from mmguard.errors import CannotRun
from mmguard.files.plain_data import Rank, decode, parse_object
from mmguard.files.regular import open_regular
from mmguard.labels.spaces import LabelSpaces, from_record
from mmguard.log.flight_record import NAME as FLIGHT
from mmguard.log.lines import UnreadParts
from mmguard.log.run_log import NAME, RECORD_FORMAT
from mmguard.log.statistics import Stats

#: Limit of a record of a run or of its end, in bytes.
_LARGEST = 1 << 25


class NotALog(CannotRun):
    """Reason why there is nothing to report on, as text for the user."""


@dataclass
class RunFiles:
    """Files of one run; rank 0 comes first in each list."""

    folder: Path  #: The folder of the files.
    logs: List[Path] = field(default_factory=list)  #: ``label_guard.jsonl``, ``label_guard.rank1.jsonl``, ...
    records: List[Path] = field(default_factory=list)  #: ``label_guard.json``, ...
    crashes: List[Path] = field(default_factory=list)  #: ``label_guard_flight.jsonl``, ...


def find_run(target: Path) -> RunFiles:
    """Find the files of a run.

    Args:
        target (Path): A log, ``label_guard.json`` or a flight record: all files of its run. A folder: the newest run in
            or below it.

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
    # The files of every rank count: rank 0 may have met nothing.
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
    """Return ``'crash'``, ``'record'`` or ``'log'``, judging by the first line of a file, or all of it."""
    with contextlib.suppress(OSError), open_regular(path) as file:  # the reader of logs reports what cannot be read
        for read in (file.readline, file.read):
            file.seek(0)
            with contextlib.suppress(ValueError):
                content = parse_object(read(_LARGEST))
                if 'capacity' in content:
                    return 'crash'
                return 'record' if 'runs' in content else 'log'
    return 'log'


def _strip_rank(path: Path) -> Path:
    """Return ``a.json`` for ``a.rank3.json``."""
    stem, _, rank = path.stem.rpartition('.rank')
    return path.with_name(f'{stem}{path.suffix}') if stem and rank.isdigit() else path


def _find_ranks(first: Path) -> List[Path]:
    """Return a file and the existing files of the other ranks in its folder."""
    ranks = {_parse_rank(path, first): path for path in first.parent.glob('*')}
    found = [ranks[rank] for rank in sorted(rank for rank in ranks if rank is not None)]
    return [path for path in (first, *found) if path.is_file()]


def _parse_rank(path: Path, first: Path) -> Optional[int]:
    """Return 1 for ``a.rank1.json`` if ``first`` is ``a.json``; ``None`` for a file of another name."""
    start, end = f'{first.stem}.rank', first.suffix
    number = path.name[len(start) : len(path.name) - len(end)]
    fits = path.name.startswith(start) and path.name.endswith(end) and number.isascii() and number.isdigit()
    return int(number) if fits else None


@dataclass
class LoggedMode:
    """Record of one mode of a run, over all ranks."""

    totals: Stats = field(default_factory=Stats)  #: Sums over all iterations, loops and ranks.
    ended: bool = True  #: True if each rank closed its record: no iteration is missing.
    place: int = 0  #: The last counted iteration.
    record: Dict[str, Any] = field(default_factory=dict)  #: Valid labels, in the record of the first rank.
    #: For each run in that record, the end of a loop (for a validation, the training iteration) -> its iterations.
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
    """Add up the records of all ranks. Unreadable ones are in ``problems``; nothing is raised."""
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
        record = decode(_RecordJson, parse_object(file.read(_LARGEST)))
    if record.format != RECORD_FORMAT:
        raise ValueError(f'format {record.format}, this mmguard reads {RECORD_FORMAT}')
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
