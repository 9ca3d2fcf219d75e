"""The files that mmguard's hooks leave of one run, and where they are."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, List, Optional

from mmguard.errors import CannotRun
from mmguard.files.regular import open_regular
from mmguard.files.typed_json import parsed
from mmguard.log.flight_record import NAME as FLIGHT
from mmguard.log.run_log import NAME
from mmguard.log.run_record import record_name

#: What flight records were called before.
_OLD_FLIGHT = 'label_guard_crash'
#: A file of more bytes is no record of a run or of its end.
_LARGEST = 1 << 25


class NotALog(CannotRun):
    """Why there is nothing to report on, in words for the user."""


@dataclass
class RunFiles:
    """Files of one run; of each sort rank 0 first.

    Args:
        folder (Path): Where they are.
        logs (list[Path]): ``label_guard.jsonl``, ``label_guard.rank1.jsonl``, ...
        records (list[Path]): ``label_guard.json``, ...
        crashes (list[Path]): ``label_guard_flight.jsonl``, ...
        others (list[Path]): Folders of other runs below the one that was named, the newest first.
        crash_alone (bool): Only how the run ended is asked for.
    """

    folder: Path
    logs: List[Path] = field(default_factory=list)
    records: List[Path] = field(default_factory=list)
    crashes: List[Path] = field(default_factory=list)
    others: List[Path] = field(default_factory=list)
    crash_alone: bool = False


def find_run(target: Path) -> RunFiles:
    """The files of a run.

    Args:
        target (Path): A log or ``label_guard.json``: all of its run. A flight record: it and those of the other ranks.
            A folder: the newest run at or below it.

    Raises:
        NotALog: There is none.
    """
    if target.is_dir():
        return _newest_below(target)
    if not target.is_file():  # nor a pipe, which can be read once alone
        raise NotALog(f'{target}: there is no such file or folder')
    folder, sort = target.parent, _sort_of(target)
    if sort == 'crash':
        records = _with_ranks(folder / record_name(NAME))
        return RunFiles(folder, records=records, crashes=_with_ranks(_of_rank_0(target)), crash_alone=True)
    log = target if sort == 'log' else _of_rank_0(target).with_suffix('.jsonl')
    record = log.with_name(record_name(log.name))
    return RunFiles(folder, _with_ranks(log), _with_ranks(record), _with_ranks(folder / FLIGHT))


def _newest_below(folder: Path) -> RunFiles:
    # Every rank's file counts: rank 0 may have met nothing.
    runs: Dict[Path, RunFiles] = {}
    age: Dict[Path, float] = {}
    # An earlier run's files that were renamed end in .old.
    paths = (path for path in folder.rglob('label_guard*.json*') if path.suffix in ('.json', '.jsonl'))
    for path in sorted(path for path in paths if path.is_file()):
        run = runs.setdefault(path.parent, RunFiles(path.parent))
        is_flight = path.name.startswith((Path(FLIGHT).stem, _OLD_FLIGHT))
        sort = run.crashes if is_flight else run.logs if path.suffix == '.jsonl' else run.records
        sort.append(path)
        age[path.parent] = max(age.get(path.parent, 0.0), path.stat().st_mtime)
    if not runs:
        raise NotALog(
            f'{folder}: nothing that a hook of mmguard wrote below this folder. LabelGuardHook writes label_guard.json '
            f"and {NAME} into the run's log folder (work_dirs/CONFIG/DATE_TIME), FlightRecorderHook {FLIGHT}"
        )
    newest, *others = sorted(runs, key=lambda run: (age[run], str(run)), reverse=True)
    runs[newest].others = others
    return runs[newest]


def _sort_of(path: Path) -> str:
    """What a file is, by what it says: its first line, or all of it."""
    with contextlib.suppress(OSError), open_regular(path) as file:  # the reader of logs says what cannot be read
        for read in (file.readline, file.read):
            file.seek(0)
            with contextlib.suppress(ValueError):
                content = parsed(read(_LARGEST))
                if 'capacity' in content or 'batches' in content:
                    return 'crash'
                return 'record' if 'runs' in content else 'log'
    return 'log'


def _of_rank_0(path: Path) -> Path:
    """``a.json`` of ``a.rank3.json``."""
    stem, _, rank = path.stem.rpartition('.rank')
    return path.with_name(f'{stem}{path.suffix}') if stem and rank.isdigit() else path


def _with_ranks(first: Path) -> List[Path]:
    """A file and those of the other ranks beside it, as far as they are there."""
    ranks = {_rank(path, first): path for path in first.parent.glob('*')}
    found = [ranks[rank] for rank in sorted(rank for rank in ranks if rank is not None)]
    return [path for path in (first, *found) if path.is_file()]


def _rank(path: Path, first: Path) -> Optional[int]:
    """1 of ``a.rank1.json`` where ``first`` is ``a.json``."""
    start, end = f'{first.stem}.rank', first.suffix
    number = path.name[len(start) : len(path.name) - len(end)]
    fits = path.name.startswith(start) and path.name.endswith(end) and number.isascii() and number.isdigit()
    return int(number) if fits else None
