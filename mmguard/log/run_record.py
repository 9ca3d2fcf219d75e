"""``label_guard.json``, next to the JSON lines: the valid labels of a run and the sums over all iterations."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

from mmguard.files.regular import open_regular
from mmguard.files.typed_json import Rank, decoded, parsed
from mmguard.files.whole import write_whole
from mmguard.labels.space import LabelSpace
from mmguard.labels.spaces import LabelSpaces, from_record
from mmguard.log.iteration_stats import LoopTotals
from mmguard.log.lines import Unread
from mmguard.log.loop_stats import LoopStats, PerFileStats
from mmguard.version import __version__

#: Counts up when a field changes its meaning.
RECORD_FORMAT = 1
#: Seconds between two writings while a loop runs: where a run is killed, the counts of so long are missing, at most.
EVERY = 60.0


class RunRecord:
    """Keeps ``label_guard.json`` up to date: at the start and the end of a loop, and once a minute in between.

    A file of its own, not a first line of the log: there every line is an iteration, which is what readers
    (``pandas.read_json(lines=True)``, ``jq``) count on. A run that goes on in the same folder adds its own record to
    those of the file. A disk that is full never hurts a training: ``error`` says why nothing was written.

    Args:
        path (str): The file; its folder is made.
        config (str, optional): The config of the run.
        rank, world_size (int): Of this process.
        every (float): Least time between two writings while a loop runs, seconds.
        framework (str): Who trains: ``'openmmlab'``, ``'pytorch'`` (a loop of one's own) or ``'nnunet'``.
    """

    def __init__(
        self,
        path: str,
        config: Optional[str] = None,
        rank: int = 0,
        world_size: int = 1,
        every: float = EVERY,
        framework: str = 'openmmlab',
    ) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self._run: Dict[str, Any] = {
            'mmguard': __version__,
            'framework': framework,
            'config': config,
            'started': time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            'rank': rank,
            'world_size': world_size,
            'modes': {},
        }
        self._modes: Dict[str, _Mode] = {}
        self._earlier: Optional[List[Any]] = None
        self._every = every
        self._written = 0.0

    def begin(self, mode: str, ledger: LoopStats, valid: Optional[Dict[str, Any]] = None) -> None:
        """A loop begins."""
        first = mode not in self._modes
        said = self._run['modes'].setdefault(mode, dict(valid or {}))
        state = self._modes.setdefault(mode, _Mode(said))
        state.take(ledger)
        said['ended'] = False
        if first:
            self.write()

    def see(self, mode: str, place: Dict[str, int]) -> None:
        """The loop goes on; ``place`` is the iteration, as in the lines of the log."""
        self._run['modes'][mode].update(place)
        if time.monotonic() - self._written >= self._every:
            self.write()

    def end(self, mode: str) -> None:
        """The loop came to its end."""
        self._modes[mode].fold()
        self._run['modes'][mode]['ended'] = True
        self.write()

    def write(self) -> bool:
        """Writes the file, whole or not at all. Returns False where it could not."""
        self._written = time.monotonic()
        if self._earlier is None:
            self._earlier = _runs_in(self.path)
        for mode, state in self._modes.items():
            self._run['modes'][mode].update(loops=state.loops(), totals=state.totals().to_json())
        record = {'format': RECORD_FORMAT, 'runs': [*self._earlier, self._run]}
        try:
            # File names that are no UTF-8 are lone surrogates, which JSON can hold as an escape alone.
            text = json.dumps(record, ensure_ascii=False, indent=1).encode(errors='backslashreplace')
            write_whole(Path(self.path), text)
        except OSError as error:
            self.error = error
            return False
        self.error = None
        return True


class _Mode:
    """The loops of one mode: those that ended, and the one that runs.

    Args:
        said (dict): What the record says of the mode, the last iteration among it.
    """

    def __init__(self, said: Dict[str, Any]) -> None:
        self._said = said
        self._loops: Dict[str, int] = {}
        self._ended = LoopTotals()
        self._running: Optional[LoopStats] = None
        self._files = PerFileStats()

    def take(self, ledger: LoopStats) -> None:
        self.fold()
        self._running = ledger

    def fold(self) -> None:
        if self._running is not None:
            self._loops = self.loops()
            self._ended = self.totals()
            self._files = self._all_files()
            self._running = None

    def loops(self) -> Dict[str, int]:
        """Return where each loop was at its end (of a validation, the training iteration) -> its iterations."""
        place = self._said.get('step', self._said.get('iter'))
        running = 0 if self._running is None else self._running.sums.iterations
        return {**self._loops, **({str(place): running} if running else {})}

    def totals(self) -> LoopTotals:
        totals = self._ended if self._running is None else self._ended + self._running.totals()
        files = self._all_files()
        return replace(totals, files=len(files), offending_files=files.offending)

    def _all_files(self) -> PerFileStats:
        """Not the sum over the loops: a validation sees the same files each time."""
        running = PerFileStats() if self._running is None else self._running.files
        if not len(self._files):
            return running
        self._files.merge(running)
        return self._files


def _runs_in(path: str) -> List[Any]:
    """The runs of a file that is there already; one that is none of this format is replaced."""
    try:
        record = json.loads(Path(path).read_bytes())
    except (OSError, ValueError):
        return []
    runs = record.get('runs') if isinstance(record, dict) and record.get('format') == RECORD_FORMAT else None
    return runs if isinstance(runs, list) else []


def record_name(out_file: str) -> str:
    """The name beside that of the JSON lines.

    Example:
        >>> record_name('label_guard.jsonl'), record_name('guard.json')
        ('label_guard.json', 'guard.run.json')
    """
    stem = os.path.splitext(out_file)[0]
    return f'{stem}.json' if f'{stem}.json' != out_file else f'{stem}.run.json'


def space_to_json(kind: str, space: LabelSpace) -> Dict[str, Any]:
    """What a guard takes for valid, as plain data; ``kind`` is ``'pixels'`` or ``'instances'``."""
    return {
        'kind': kind,
        'num_classes': space.num_classes,
        **({'min_label': space.min_label} if getattr(space, 'min_label', 0) else {}),
        'ignore_index': space.ignore_index,
        'on_invalid': space.on_invalid,
        'label_map': {str(raw): label for raw, label in sorted(space.label_map.items())},
    }


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
class _RecordJson:
    """The file."""

    format: int
    runs: List[Any]


@dataclass
class _RunJson:
    """A run in the file."""

    modes: Dict[str, Dict[str, Any]]
    framework: str = ''
    world_size: Optional[Rank] = None


@dataclass
class _ModeJson:
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


def _read(path: Path) -> _RecordJson:
    with open_regular(path) as file:
        record = decoded(_RecordJson, parsed(file.read(_LARGEST)))
    if record.format != RECORD_FORMAT:
        raise ValueError(f'format {record.format}, this mmguard reads {RECORD_FORMAT}')
    return record


def _add(run: LoggedRun, record: Any) -> None:
    # All of it is read before any of it is added.
    part = decoded(_RunJson, record)
    modes = {mode: decoded(_ModeJson, said) for mode, said in part.modes.items()}
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
