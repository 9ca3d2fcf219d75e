"""Writer of the files of a run: a JSON line for each iteration with invalid labels, and the sums of each mode."""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from mmguard.files.plain_data import DEEPEST, is_nested, parse_object
from mmguard.files.regular import NOT_REGULAR_FAULT, open_append, read_regular, write_whole
from mmguard.labels.tally import UNKNOWN, Tally, find_path, make_relative
from mmguard.language import translate
from mmguard.log.statistics import DETAILED, PerFileStats, Stats
from mmguard.version import __version__

#: File names of the lines, of the sums, and of the flight record.
NAME, RECORD, FLIGHT = 'label_guard.jsonl', 'label_guard.json', 'label_guard_flight.jsonl'
#: Limit of the file of lines, in MB (2**20 bytes).
MAX_MB = 256
#: Format of ``label_guard.json``; changes when a field changes its meaning.
RECORD_FORMAT = 1
#: Seconds between two writes of the sums while a loop runs: a killed run misses counts of at most that time.
EVERY = 60.0
#: Limit of a record that is continued, in bytes.
_LARGEST = 1 << 20

_FULL_NOTE = 'size limit reached: no further line is written; the sums continue in label_guard.json'


class JsonLines:
    """Writer of one JSON object per line, each passed to the operating system immediately.

    A process that dies does not lose written lines. If a killed process left a last line half-written, a new line is
    begun after it. A line that cannot be written is dropped (``error`` is the reason), and the next one is tried:
    training continues either way. When the file reaches ``MAX_MB``, a last line says so (``is_full``).
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self.is_full = False
        self._size = 0
        self._file: Optional[int] = None

    def write(self, record: Dict[str, Any]) -> bool:
        """Append a record; return False if it was not written (see ``error`` and ``is_full``)."""
        if self.is_full:
            return False
        line = encode_line(record)
        try:
            if self._file is None:
                self._file = self._open()
            if self._size + len(line) > MAX_MB * 2**20:
                self.is_full = True
                line = encode_line({'note': _FULL_NOTE})
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
        file = open_append(self.path)
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
    """Encode a record as one line of JSON."""
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


class ModeStats:
    """Statistics of one mode of a run, for the current loop and all earlier ones.

    ``sums`` are the sums of the current loop, without the number of files. ``files`` has the counts of every file in
    the current loop, and the names of all files of the mode, relative to ``roots``.
    """

    def __init__(self, detailed: Optional[int] = DETAILED) -> None:
        self.roots: List[str] = []
        self.sums = Stats()
        self.files = PerFileStats(detailed)
        self._earlier = Stats()
        #: Last iteration of each loop (for a validation, training iteration) -> number of its iterations.
        self._ends: Dict[str, int] = {}
        self._place: Dict[str, int] = {}

    def start(self, roots: Sequence[str]) -> None:
        """Start a loop; its sums start from 0."""
        self._ends = self._list_ends()
        self._earlier += self.sums
        self.roots, self.sums, self._place = list(roots), Stats(), {}
        self.files.start_loop()

    def add(self, stats: Stats, place: Dict[str, int], sources: Iterable[str] = ()) -> Optional[Stats]:
        """Add an iteration; return its statistics for the log line, or ``None`` if nothing was skipped or remapped.

        In the line, file names are relative, and values are left out if they equal those of the file's previous line.
        """
        self._place = place
        self.files.see(map(self.shorten, sources))
        self.sums.add_sums(stats)
        if not stats:
            return None
        offending, loss_samples = (
            {kind: [self._add_image(kind, tally) for tally in tallies] for kind, tallies in found.items()}
            for found in (stats.offending, stats.loss_samples)
        )
        return replace(stats, offending=offending, loss_samples=loss_samples)

    def _add_image(self, kind: str, tally: Tally) -> Tally:
        source = UNKNOWN if tally.source is None else self.shorten(str(tally.source))
        self.sums.kinds[kind] += Tally(values=tally.values, other_values=tally.other_values)
        repeats = self.files.add(kind, replace(tally, source=source))
        shown = replace(tally, source=None if tally.source is None else source)
        return replace(shown, values={}, other_values=0, reasons={}) if repeats else shown

    def shorten(self, source: str) -> str:
        return make_relative(source, self.roots)

    def find_worst(self, kind: str, number: int) -> List[Tally]:
        """Return the files with the most skipped or remapped elements in the loop, with paths that can be opened."""
        found = self.files.find_worst(kind, number)
        return [replace(tally, source=find_path(str(tally.source), self.roots)) for tally in found]

    def totals(self, loops: Optional[Stats] = None) -> Stats:
        """Return ``loops``, or the sums of the current loop if it is ``None``, with the numbers of files filled in."""
        return replace(
            self.sums if loops is None else loops, files=len(self.files), offending_files=self.files.offending
        )

    def to_json(self) -> Dict[str, Any]:
        """Convert the sums of all loops, the end of each loop, and the last iteration to plain data."""
        return {'loops': self._list_ends(), 'totals': self.totals(self._earlier + self.sums).to_json(), **self._place}

    def _list_ends(self) -> Dict[str, int]:
        end = self._place.get('step', self._place.get('iter'))
        return self._ends if end is None else {**self._ends, str(end): self.sums.iterations}


class RunLog:
    """Writer of ``label_guard.jsonl`` and ``label_guard.json`` for mmengine's hooks, nnU-Net and your own loops.

    The sums have their own file, because readers of the log (``pandas.read_json(lines=True)``, ``jq``) rely on
    one iteration per line. They are written at the start and the end of a loop, and once a minute in between. A run
    that continues in the same folder is added to the runs in the file; a file that cannot be read is kept, and the new
    run gets ``label_guard.2.json`` and ``label_guard.2.jsonl``. Every rank other than 0 has its own files. No error is
    raised if a file cannot be written: see :meth:`take_problems`. ``framework`` is ``'openmmlab'``, ``'pytorch'``
    (your own loop) or ``'nnunet'``.
    """

    def __init__(
        self,
        folder: str,
        rank: int = 0,
        world_size: int = 1,
        framework: str = 'openmmlab',
        config: Optional[str] = None,
    ) -> None:
        self.modes: Dict[str, ModeStats] = {}
        self._names = [os.path.join(folder, name_for_rank(name, rank)) for name in (NAME, RECORD)]
        self.lines, self.record = self._names
        self._lines = JsonLines(self.lines)
        self._kept: Optional[Tuple[str, Any]] = None  #: A file that is not continued, and the reason.
        self._run: Dict[str, Any] = {
            'mmguard': __version__,
            'framework': framework,
            'config': config,
            'started': time.strftime('%Y-%m-%dT%H:%M:%S%z'),
            'rank': rank,
            'world_size': world_size,
            'modes': {},
        }
        self._earlier: Optional[List[Any]] = None
        self._written = 0.0
        self._error: Optional[OSError] = None
        self._reported: Set[str] = set()

    def begin(self, mode: str, valid: Optional[Dict[str, Any]] = None, roots: Sequence[str] = ()) -> None:
        """Start a loop; its sums start from 0. The ``valid`` labels are kept from the first loop of the mode."""
        is_first = mode not in self.modes
        self.modes.setdefault(mode, ModeStats()).start(roots)
        self._run['modes'].setdefault(mode, dict(valid or {}))['ended'] = False
        if is_first:
            self.write()

    def see(self, mode: str, place: Dict[str, int], stats: Stats, sources: Iterable[str] = ()) -> None:
        """Add an iteration, and write its line if it has invalid labels.

        ``place`` has ``iter`` as on the console, and ``step`` (the training iteration) if ``iter`` restarts;
        ``sources`` are all files of the iteration.
        """
        shown = self.modes[mode].add(stats, place, sources)
        self._write_line({} if shown is None else {'mode': mode, **place, **shown.to_line()})

    def add_filled_losses(self, mode: str, place: Dict[str, int], filled: Sequence[Any]) -> None:
        """Write a line about ranks on which losses were missing in this iteration and replaced by zeros."""
        if mode not in self.modes:
            self.begin(mode)
        for rank, losses, _ in filled:
            self.modes[mode].sums.add_filled_losses(rank, losses)
        self._run['modes'][mode].update(place)
        ranks = [{'rank': rank, 'losses': list(losses), 'samples': list(samples)} for rank, losses, samples in filled]
        self._write_line({'mode': mode, **place, 'filled': ranks})

    def _write_line(self, line: Dict[str, Any]) -> None:
        if line:
            self._lines.write(line)
        if time.monotonic() - self._written >= EVERY:
            self.write()

    def end(self, mode: str) -> None:
        """Record that the loop of a mode has ended, and write the sums."""
        self._run['modes'][mode]['ended'] = True
        self.write()

    def write(self) -> None:
        """Write the sums to ``label_guard.json`` atomically, if a loop has begun."""
        if not self.modes:
            return
        self._written = time.monotonic()
        if self._earlier is None:
            self._earlier = self._read_earlier()
        for mode, stats in self.modes.items():
            self._run['modes'][mode].update(stats.to_json())
        try:
            content = _encode({'format': RECORD_FORMAT, 'runs': [*self._earlier, self._run]}, indent=1)
            write_whole(Path(self.record), content)
            self._error = None
        except OSError as error:
            self._error = error

    def _read_earlier(self) -> List[Any]:
        """Return the earlier runs in the record; if it cannot be continued, use ``label_guard.2.json`` and so on."""
        for number in count(2):
            try:
                for path in (self.lines, self.record):
                    if os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
                        raise OSError(0, NOT_REGULAR_FAULT)
                return _read_runs(path)
            except (OSError, ValueError) as error:
                if not os.path.lexists(path):  # the folder cannot be used, which is reported when it is written to
                    return []
                self._kept = self._kept or (path, getattr(error, 'strerror', None) or error)
            self.lines, self.record = (f'.{number}'.join(os.path.splitext(name)) for name in self._names)
            self._lines.path = self.lines
        return []

    def close(self) -> None:
        """Close the file of lines; a later line opens it again."""
        self._lines.close()

    def take_problems(self) -> List[str]:
        """Return new messages about files that are full or cannot be written or continued; report each problem once."""
        if not (self._lines.error or self._error or self._lines.is_full or self._kept):
            return []
        problems = {}
        for path, error in ((self.lines, self._lines.error), (self.record, self._error)):
            if error is not None:
                problems[path] = translate('{file} cannot be written: {error}', file=path, error=error)
        if self._lines.is_full:
            template = '{file} has reached its limit and gets no further lines; the sums continue in {record}'
            problems['full'] = translate(template, file=self.lines, record=self.record)
        if self._kept:
            template = '{file} is not continued ({error}) and kept as it is: this run is recorded in {record}'
            problems['kept'] = translate(template, file=self._kept[0], error=self._kept[1], record=self.record)
        new = [text for name, text in problems.items() if name not in self._reported]
        self._reported.update(problems)
        return new


def _read_runs(path: str) -> List[Any]:
    """Return the runs in a record, [] if the file is missing or empty; raise OSError or ValueError if unreadable."""
    content = read_regular(path, _LARGEST) if os.path.exists(path) else b''
    if not content:
        return []
    record = parse_object(content)
    runs = record.get('runs')
    if record.get('format') != RECORD_FORMAT or not isinstance(runs, list) or is_nested(runs, DEEPEST):
        raise ValueError(f'it is not a record of format {RECORD_FORMAT}')
    return runs
