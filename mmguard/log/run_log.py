"""Writer of a run: its JSON lines, its record, and the statistics of its loops."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set

from mmguard.files.regular import write_whole
from mmguard.language import Message, translate
from mmguard.log.loop_stats import LoopStats, PerFileStats
from mmguard.log.statistics import Stats
from mmguard.version import __version__

#: Default name of the log of a run.
NAME = 'label_guard.jsonl'
#: Default limit of the file, in MB (2**20 bytes).
MAX_MB = 256
#: Format of ``label_guard.json``; changes when a field changes its meaning.
RECORD_FORMAT = 1
#: Seconds between two writes of the record while a loop runs: a killed run misses counts of at most that time.
EVERY = 60.0

_FULL = 'limit reached: no further lines, label_guard.json goes on with the sums'


class JsonLines:
    """Appends one JSON object per line, each passed to the operating system immediately.

    A process that dies loses no line already written. A last line that a killed process left half-written is ended
    first. A line that cannot be written is dropped, and the next one is tried again: training continues either way.

    Args:
        path (str): The file; created, with its folder, at the first line.
        max_mb (float): Size limit, in MB (2**20 bytes). A last line states that it is reached.

    Attributes:
        error (OSError, optional): The reason if the last line could not be written.
        is_full (bool): True if the size is reached.
    """

    def __init__(self, path: str, max_mb: float = MAX_MB) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self.is_full = False
        self._max_size = int(max_mb * 2**20)
        self._size = 0
        self._file: Optional[int] = None

    def write(self, record: Dict[str, Any]) -> bool:
        """Append a record. Returns False if it failed (see ``error`` and ``is_full``)."""
        if self.is_full:
            return False
        line = encode_line(record)
        try:
            if self._file is None:
                self._file = self._open()
            if self._size + len(line) > self._max_size:
                self.is_full = True
                line = encode_line({'note': _FULL})
            while line:
                written = os.write(self._file, line)
                self._size += written
                line = line[written:]
            self.error = None
        except OSError as error:
            self.error = error
            self.close()  # the next opening ends the torn line
        return self.error is None and not self.is_full

    def _open(self) -> int:
        os.makedirs(os.path.dirname(self.path) or '.', exist_ok=True)
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = os.fstat(file).st_size
        if self._size:
            os.lseek(file, self._size - 1, os.SEEK_SET)
            if os.read(file, 1) != b'\n':
                self._size += os.write(file, b'\n')
        return file

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def encode_line(record: Dict[str, Any]) -> bytes:
    """Encode a record as one line."""
    return _encode(record) + b'\n'


def _encode(record: Dict[str, Any], indent: Optional[int] = None) -> bytes:
    # File names that are not UTF-8 are lone surrogates in Python, which JSON only has as escapes.
    return json.dumps(record, ensure_ascii=False, indent=indent).encode(errors='backslashreplace')


def name_for_rank(name: str, rank: int) -> str:
    """Return the file name of a rank.

    Example:
        >>> name_for_rank('label_guard.jsonl', 0), name_for_rank('label_guard.jsonl', 2)
        ('label_guard.jsonl', 'label_guard.rank2.jsonl')
    """
    stem, suffix = os.path.splitext(name)
    return name if rank == 0 else f'{stem}.rank{rank}{suffix}'


def record_name(out_file: str) -> str:
    """Return the name of the record next to the file of lines.

    Example:
        >>> record_name('label_guard.jsonl'), record_name('guard.json')
        ('label_guard.json', 'guard.run.json')
    """
    stem = os.path.splitext(out_file)[0]
    return f'{stem}.json' if f'{stem}.json' != out_file else f'{stem}.run.json'


class RunRecord:
    """Keeps ``label_guard.json`` up to date: at the start and the end of a loop, and once a minute in between.

    It is a separate file, because every line of the log is an iteration, which its readers
    (``pandas.read_json(lines=True)``, ``jq``) count on. A run that continues in the same folder adds its own record to
    those of the file. A full disk never hurts a training: see ``error``.

    Args:
        path (str): The file; its folder is created.
        config (str, optional): The config of the run.
        rank, world_size (int): This process.
        framework (str): Who trains: ``'openmmlab'``, ``'pytorch'`` (your own loop) or ``'nnunet'``.

    Attributes:
        error (OSError, optional): The reason if the last write failed.
    """

    def __init__(
        self,
        path: str,
        config: Optional[str] = None,
        rank: int = 0,
        world_size: int = 1,
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
        self._written = 0.0

    def begin(self, mode: str, loop: LoopStats, valid: Optional[Dict[str, Any]] = None) -> None:
        """Record the start of a loop."""
        is_first = mode not in self._modes
        record = self._run['modes'].setdefault(mode, dict(valid or {}))
        self._modes.setdefault(mode, _Mode(record)).start(loop)
        record['ended'] = False
        if is_first:
            self.write()

    def see(self, mode: str, place: Dict[str, int]) -> None:
        """Record the iteration that a loop has reached, numbered as in the log's lines."""
        self._run['modes'][mode].update(place)
        if time.monotonic() - self._written >= EVERY:
            self.write()

    def end(self, mode: str) -> None:
        """Record the end of a loop."""
        self._modes[mode].end()
        self._run['modes'][mode]['ended'] = True
        self.write()

    def write(self) -> bool:
        """Write the file, whole or not at all. Returns False if it failed."""
        self._written = time.monotonic()
        if self._earlier is None:
            self._earlier = _read_runs(self.path)
        for mode, state in self._modes.items():
            self._run['modes'][mode].update(loops=state.loops(), totals=state.totals().to_json())
        try:
            content = _encode({'format': RECORD_FORMAT, 'runs': [*self._earlier, self._run]}, indent=1)
            write_whole(Path(self.path), content)
            self.error = None
        except OSError as error:
            self.error = error
        return self.error is None


class _Mode:
    """The loops of one mode: the finished ones, and the running one.

    Args:
        record (dict): The record of the mode, which has the last iteration.
    """

    def __init__(self, record: Dict[str, Any]) -> None:
        self._record = record
        self._loops: Dict[str, int] = {}
        self._ended = Stats()
        self._running: Optional[LoopStats] = None
        self._files = PerFileStats()

    def start(self, loop: LoopStats) -> None:
        self.end()
        self._running = loop

    def end(self) -> None:
        if self._running is not None:
            self._loops, self._ended, self._files = self.loops(), self.totals(), self._merge_files()
            self._running = None

    def loops(self) -> Dict[str, int]:
        """Return the end of each loop (for a validation, the training iteration) -> its iterations."""
        place = self._record.get('step', self._record.get('iter'))
        running = 0 if self._running is None else self._running.sums.iterations
        return {**self._loops, **({str(place): running} if running else {})}

    def totals(self) -> Stats:
        totals = self._ended if self._running is None else self._ended + self._running.sums
        files = self._merge_files()
        return replace(totals, files=len(files), offending_files=files.offending)

    def _merge_files(self) -> PerFileStats:
        """Return the files of all loops: a validation sees the same ones each time."""
        running = PerFileStats() if self._running is None else self._running.files
        if not len(self._files):
            return running
        self._files.merge(running)
        return self._files


def _read_runs(path: str) -> List[Any]:
    """Read the runs of an existing file; one of another format is replaced."""
    try:
        record = json.loads(Path(path).read_bytes())
    except (OSError, ValueError):
        return []
    runs = record.get('runs') if isinstance(record, dict) and record.get('format') == RECORD_FORMAT else None
    return runs if isinstance(runs, list) else []


class RunLog:
    """Writes ``label_guard.jsonl`` and ``label_guard.json`` for mmengine's hooks, nnU-Net and your own loops.

    Nothing is raised if the disk cannot be written: see :meth:`take_problems`.

    Args:
        folder (str): Folder of the files; created with the first.
        rank, world_size (int): This process; every rank other than 0 has its own files.
        framework (str): Who trains, see :class:`RunRecord`.
        config (str, optional): The config of the run.
        out_file (str, optional): Name of the file of lines; ``None``: no file at all, but the sums are kept.
        max_mb (float): Size limit of that file.

    Attributes:
        loops (dict[str, LoopStats]): Mode -> statistics of its last loop.
    """

    def __init__(
        self,
        folder: str,
        rank: int = 0,
        world_size: int = 1,
        framework: str = 'openmmlab',
        config: Optional[str] = None,
        out_file: Optional[str] = NAME,
        max_mb: float = MAX_MB,
    ) -> None:
        self.loops: Dict[str, LoopStats] = {}
        self._lines: Optional[JsonLines] = None
        self._record: Optional[RunRecord] = None
        self._reported: Set[str] = set()
        if out_file is not None:
            self._lines = JsonLines(os.path.join(folder, name_for_rank(out_file, rank)), max_mb)
            record = os.path.join(folder, name_for_rank(record_name(out_file), rank))
            self._record = RunRecord(record, config, rank, world_size, framework=framework)

    @property
    def path(self) -> Optional[str]:
        """The file of lines."""
        return None if self._lines is None else self._lines.path

    @property
    def paths(self) -> List[str]:
        return [file.path for file in (self._lines, self._record) if file is not None]

    def begin(self, mode: str, valid: Optional[Dict[str, Any]] = None, roots: Sequence[str] = ()) -> LoopStats:
        """Start a loop; its sums start from 0.

        Args:
            mode (str): ``'train'``, ``'val'`` or ``'test'``.
            valid (dict, optional): The valid labels; kept from the first loop of the mode.
            roots (sequence of str): Data roots; files are named relative to them.
        """
        loop = self.loops[mode] = LoopStats(list(roots))
        if self._record is not None:
            self._record.begin(mode, loop, valid)
        return loop

    def see(self, mode: str, place: Dict[str, int], stats: Stats, sources: Iterable[str] = ()) -> None:
        """Add an iteration and report it immediately."""
        self.loops[mode].see_files(sources)
        self.loops[mode].add(stats)
        self.report(mode, place)

    def report(self, mode: str, place: Dict[str, int]) -> Stats:
        """Report what is pending, in one line if there is an offence."""
        stats, line = self.loops[mode].report()
        self._write(mode, place, line)
        return stats

    def fill(self, mode: str, place: Dict[str, int], filled: Sequence[Any]) -> None:
        """Report ranks that lacked losses in this iteration, and trained with zeros in their place."""
        loop = self.loops[mode] if mode in self.loops else self.begin(mode)
        for rank, losses, _ in filled:
            loop.sums.fill(rank, losses)
        ranks = [{'rank': rank, 'losses': list(losses), 'samples': list(samples)} for rank, losses, samples in filled]
        self._write(mode, place, {'filled': ranks})

    def _write(self, mode: str, place: Dict[str, int], line: Dict[str, Any]) -> None:
        if self._lines is not None and line:
            self._lines.write({'mode': mode, **place, **line})
        if self._record is not None:
            self._record.see(mode, place)

    def end(self, mode: str) -> LoopStats:
        """End a loop."""
        if self._record is not None:
            self._record.end(mode)
        return self.loops[mode]

    def write(self) -> None:
        """Update the sums on disk, if there are any."""
        if self._record is not None and self.loops:
            self._record.write()

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()

    def take_problems(self) -> List[str]:
        """Return which files cannot be written, and why; each file once."""
        problems = {}
        for file in (self._lines, self._record):
            if file is not None and file.error is not None:
                template = '{file} cannot be written: {error}'
                problems[file.path] = translate(template, file=file.path, error=file.error)
        if self._lines is not None and self._lines.is_full:
            problems[f'{self._lines.path} is full'] = translate(
                '{file} has reached its limit and gets no further lines; the sums go on in {record}',
                file=self._lines.path,
                record=self._record.path if self._record else Message('memory'),
            )
        new = [text for name, text in problems.items() if name not in self._reported]
        self._reported.update(problems)
        return new
