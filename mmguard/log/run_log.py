"""Writer of a run: its JSON lines, its record, and the sums of its loops."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterable, List, Optional, Sequence, Set

from mmguard.log.iteration_stats import IterationStats
from mmguard.log.loop_stats import LoopStats
from mmguard.log.run_record import RunRecord, record_name

#: The log of a run, where nobody calls it otherwise.
NAME = 'label_guard.jsonl'
#: What the file may grow to, in MB (2**20 bytes).
MAX_MB = 256

_FULL = 'limit reached: no further lines, label_guard.json goes on with the sums'


class JsonLines:
    """Appends one JSON object per line, each handed to the operating system at once.

    A process that dies loses no line already written. A last line that a killed process left half-written is ended
    first. A line that cannot be written is dropped, the next one is tried again: the training goes on either way.

    Args:
        path (str): The file; made, with its folder, at the first line.
        max_mb (float): Its largest size, in MB (2**20 bytes). One last line says that it is reached.

    Attributes:
        error (OSError, optional): Why the last line could not be written; ``None`` where it was.
        is_full (bool): Whether the size is reached.
    """

    def __init__(self, path: str, max_mb: float = MAX_MB) -> None:
        self.path = path
        self.error: Optional[OSError] = None
        self.is_full = False
        self._max_size = int(max_mb * 2**20)
        self._size = 0
        self._file: Optional[int] = None

    def write(self, record: Dict[str, Any]) -> bool:
        """Appends a record. Returns False where it could not (``error`` or ``is_full`` say why)."""
        if self.is_full:
            return False
        line = encoded(record)
        try:
            if self._file is None:
                self._file = self._open()
            if self._size + len(line) > self._max_size:
                self.is_full = True
                line = encoded({'note': _FULL})
            while line:
                written = os.write(self._file, line)
                self._size += written
                line = line[written:]
            self.error = None
        except OSError as error:
            self.error = error
            self.close()  # opened anew, it ends the torn line
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


def encoded(record: Dict[str, Any]) -> bytes:
    """A record as one line."""
    # File names that are no UTF-8 reach Python as lone surrogates, which JSON can hold as an escape alone.
    return json.dumps(record, ensure_ascii=False).encode(errors='backslashreplace') + b'\n'


def name_for_rank(name: str, rank: int) -> str:
    """The file of a rank.

    Example:
        >>> name_for_rank('label_guard.jsonl', 0), name_for_rank('label_guard.jsonl', 2)
        ('label_guard.jsonl', 'label_guard.rank2.jsonl')
    """
    stem, suffix = os.path.splitext(name)
    return name if rank == 0 else f'{stem}.rank{rank}{suffix}'


class RunLog:
    """Writes ``label_guard.jsonl`` and ``label_guard.json`` for mmengine's hooks, nnU-Net and loops of one's own.

    Nothing is raised for a disk that cannot be written: see :meth:`take_problems`.

    Args:
        folder (str): Where the files are; made with the first.
        rank, world_size (int): Of this process; every rank other than 0 has files of its own.
        framework (str): Who trains, see :class:`~mmguard.log.run_record.RunRecord`.
        config (str, optional): The config of the run.
        out_file (str, optional): Name of the file of lines; ``None``: no file at all, the sums are kept all the same.
        max_mb (float): What that file may grow to.
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
        self.ledgers: Dict[str, LoopStats] = {}
        self._lines: Optional[JsonLines] = None
        self._record: Optional[RunRecord] = None
        self._said: Set[str] = set()
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
        """A loop begins; its sums start from 0.

        Args:
            mode (str): ``'train'``, ``'val'`` or ``'test'``.
            valid (dict, optional): Which labels are valid in it; kept from its first time.
            roots (sequence of str): Data roots; files are named relative to them.
        """
        ledger = self.ledgers[mode] = LoopStats(list(roots))
        if self._record is not None:
            self._record.begin(mode, ledger, valid)
        return ledger

    def see(self, mode: str, place: Dict[str, int], span: IterationStats, sources: Iterable[str] = ()) -> None:
        """Takes an iteration and reports it at once."""
        ledger = self.ledgers[mode]
        ledger.see_files(sources)
        ledger.add(span)
        self.report(mode, place)

    def report(self, mode: str, place: Dict[str, int]) -> IterationStats:
        """Writes what is pending, one line where there is an offence."""
        ledger = self.ledgers[mode]
        if ledger.pending:
            self._write({'mode': mode, **place, **ledger.pending.to_json(ledger.shorten, ledger.repeats)})
        span = ledger.take_pending()
        if self._record is not None:
            self._record.see(mode, place)
        return span

    def fill(self, mode: str, place: Dict[str, int], filled: Sequence[Any]) -> None:
        """Ranks lacked losses in this iteration, and trained with zeros in their place."""
        if mode not in self.ledgers:
            self.begin(mode)
        for rank, losses, _ in filled:
            self.ledgers[mode].sums.fill(rank, losses)
        ranks = [{'rank': rank, 'losses': list(losses), 'samples': list(samples)} for rank, losses, samples in filled]
        self._write({'mode': mode, **place, 'filled': ranks})
        if self._record is not None:
            self._record.see(mode, place)

    def end(self, mode: str) -> LoopStats:
        """A loop came to its end."""
        if self._record is not None:
            self._record.end(mode)
        return self.ledgers[mode]

    def write(self) -> None:
        """Brings the sums on disk up to date, if there are any."""
        if self._record is not None and self.ledgers:
            self._record.write()

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()

    def take_problems(self) -> List[str]:
        """What cannot be written, and why; each file once."""
        problems = {}
        for file in (self._lines, self._record):
            if file is not None and file.error is not None:
                problems[file.path] = f'{file.path} cannot be written: {file.error}'
        if self._lines is not None and self._lines.is_full:
            problems[f'{self._lines.path} is full'] = (
                f'{self._lines.path} has reached its limit and gets no further lines; the sums go on in '
                f'{self._record.path if self._record else "memory"}'
            )
        new = [text for what, text in problems.items() if what not in self._said]
        self._said.update(problems)
        return new

    def _write(self, record: Dict[str, Any]) -> None:
        if self._lines is not None:
            self._lines.write(record)
