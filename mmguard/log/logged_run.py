"""What ``label_guard.json`` says of a run: the labels that were valid, and the sums over all iterations."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from mmguard.files.regular import open_regular
from mmguard.files.typed_json import Rank, decoded, parsed
from mmguard.labels.spaces import LabelSpaces, from_record
from mmguard.log.line_reader import Unread
from mmguard.log.run_record import FORMAT
from mmguard.log.totals import LoopTotals

#: A file of more bytes is no record of a run.
_LARGEST = 1 << 25


@dataclass
class LoggedMode:
    """One mode of a run, of all ranks.

    Args:
        totals (LoopTotals): Over all iterations, loops and ranks.
        ended (bool): Whether each rank closed its record: no iteration is missing.
        place (int): The last iteration that is counted.
        said (dict): What the record of the first rank says of valid labels.
        loops (list[dict[int, int]]): For each run in that record, where a loop ended (of a validation, the training
            iteration) -> its iterations.
    """

    totals: LoopTotals = field(default_factory=LoopTotals)
    ended: bool = True
    place: int = 0
    said: Dict[str, Any] = field(default_factory=dict)
    loops: List[Dict[int, int]] = field(default_factory=list)

    @property
    def spaces(self) -> LabelSpaces:
        """The labels that were valid: as the guards say, or else a loss that met others."""
        return from_record(self.said, [name for name, count in self.totals.losses.items() if count])

    @property
    def data_roots(self) -> List[str]:
        roots = self.said.get('data_roots')
        return [str(root) for root in roots] if isinstance(roots, list) else []


@dataclass
class LoggedRun:
    """A run, as its records say.

    Args:
        modes (dict[str, LoggedMode]): Mode -> what is known of it.
        ranks (int): How many ranks left a record.
        world_size (int): How many there were; 0 where nothing says so.
        framework (str): Who trained; empty where nothing says so.
        problems (list[str]): Records that cannot be read, and why.
    """

    modes: Dict[str, LoggedMode] = field(default_factory=dict)
    ranks: int = 0
    world_size: int = 0
    framework: str = ''
    problems: List[str] = field(default_factory=list)


@dataclass
class _Record:
    """The file."""

    format: int
    runs: List[Any]


@dataclass
class _Run:
    """A run in the file."""

    modes: Dict[str, Dict[str, Any]]
    framework: str = ''
    world_size: Optional[Rank] = None


@dataclass
class _Mode:
    """A mode of a run; which labels were valid in it, ``from_record`` reads."""

    totals: Dict[str, Any]
    ended: bool = False
    iter: int = 0
    step: Optional[int] = None
    loops: Dict[int, int] = field(default_factory=dict)


def read_run(paths: Sequence[Path]) -> LoggedRun:
    """Adds up the records of all ranks. What cannot be read is in ``problems``; nothing is raised."""
    run, unread = LoggedRun(), Unread()
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
            mode.totals.files = 0  # several ranks have seen the same ones
    run.problems = unread.words()
    return run


def _read(path: Path) -> _Record:
    with open_regular(path) as file:
        record = decoded(_Record, parsed(file.read(_LARGEST)))
    if record.format != FORMAT:
        raise ValueError(f'format {record.format}, this mmguard reads {FORMAT}')
    return record


def _add(run: LoggedRun, record: Any) -> None:
    # All of it is read before any of it is added.
    part = decoded(_Run, record)
    modes = {mode: decoded(_Mode, said) for mode, said in part.modes.items()}
    totals = {mode: LoopTotals.from_json(read.totals) for mode, read in modes.items()}
    run.framework = part.framework or run.framework
    run.world_size = max(run.world_size, part.world_size or 0)
    for mode, read in modes.items():
        known = run.modes.setdefault(mode, LoggedMode(said=part.modes[mode]))
        known.totals = known.totals + totals[mode]
        known.ended = known.ended and read.ended
        place = read.iter if read.step is None else read.step
        known.place = max(known.place, place)
        if run.ranks == 1:
            # Older records do not say when validations were; nnU-Net and TallyLog count all validations as one loop.
            whole = {} if mode == 'val' else {place: totals[mode].iterations}
            known.loops.append(read.loops if read.loops and part.framework == 'openmmlab' else whole)
