"""Reader of logs of any size, which collects the errors after which training did not continue."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from mmguard.commands.explain.log_errors import (
    HEADER,
    IGNORED,
    LONE,
    LONGEST,
    PROGRESS,
    LogError,
    LoggedException,
    OpenTraceback,
    OutputLine,
    Piece,
    build_bare_pattern,
    read_line,
)
from mmguard.commands.explain.log_facts import HEAD, FactLines, find_ending
from mmguard.commands.explain.scores import ClassScores, Scores, find_one_class
from mmguard.errors import CannotRun
from mmguard.log.flight_record import read_flight
from mmguard.log.run_log import FLIGHT
from mmguard.text import visible_name

#: Words of errors. A piece of a log without any of these words is skipped, which takes almost no time.
_TRIGGERS = (
    b'Traceback|rror|xception|ssert|illed|SIG|nan|: inf|fault|dumped|free()|imeout|imed out|ut of memory|exit|'
    b'ackground worker|nexpected label|o labels|corrupt|oss: -|oss -|=-'
).split(b'|')
#: Number of bytes at the beginning that are read line by line, because pasted lines may lack the words of errors.
_BEGINNING = 1 << 14
#: Number of lines kept before an error, of errors with such lines, and of bytes kept of the previous piece.
_BEFORE, _WITH_BEFORE, _TAIL = 12, 8, 1 << 12
_PIECE = 1 << 16
#: Maximum number of bytes of a line; of a longer line, only the end is read.
_LONGEST_LINE = 1 << 18
#: Maximum number of errors that are kept; later errors are mostly consequences of the first ones.
_TROUBLES = 200
#: Maximum number of remembered lines; lines that differ only in digits count once.
_SHAPES = 10_000

#: Maximum number of bytes of buffered print() output that may follow an error in a file; loggers write immediately.
_BUFFERED = 1 << 14
_ENOUGH_PROGRESS = 3
_PROGRESS_WORDS = (b'poch', b'Iter', b'it/s', b's/it', b'_loss', b'step')

_WARNED = re.compile(r'Warning\b')
_IS_NAN = re.compile(r'\bloss\w*["\']?\s?[:=]\s?(?:-?inf|nan|NaN)\b')
_IS_FINITE = re.compile(r'\bloss\w*["\']?\s?[:=]\s?-?\d')
_NUMBERS = re.compile(r'\d+')


class Reader:
    """Reader that takes a log in pieces of bytes, and collects its errors in ``troubles``."""

    def __init__(self) -> None:
        self.troubles: List[LogError] = []  #: Errors after which training did not continue.
        self.first_rank = ''  #: Rank that failed first, according to torchrun.
        self.beginning: List[str] = []  #: The first lines, in which a pasted message is searched for.
        self.classes = ClassScores()
        self.scores = Scores()
        self.facts = FactLines()
        self.signs: List[LogError] = []  #: Signs of a fault, which are kept even if training continues.
        self._signs: List[str] = []
        self._tail = b''
        self._rows: List[bytes] = []
        self._first_row = 0
        self._rest = b''
        self.lines = 0  #: Number of lines read.
        self._read = 0
        self._open: Dict[str, OpenTraceback] = {}
        self._said: Dict[str, LogError] = {}
        #: {line without its digits: its error, or ``None`` if the line is not an error}.
        self._shapes: Dict[bytes, Optional[LogError]] = {}
        self._progress = 0
        self._since = 0
        self._has_finite_loss = False
        self._last_was_ignored = False
        self._bare: Optional[LogError] = None
        self._root_cause_lines = 0

    def read(self, pieces: Iterable[bytes]) -> Reader:
        """Read all pieces of a log, add the signs that need the whole log, and return this reader."""
        for piece in pieces:
            for start in range(0, len(piece), _PIECE):
                self._take(piece[start : start + _PIECE])
        if self._rest:
            self._take(b'\n')
        self._open.clear()
        if self.classes.always_nan:
            predicted = ', but it is predicted' if self.classes.predicted.issuperset(self.classes.always_nan) else ''
            self._add_sign(Piece(*self.classes.last, f'No label of a class: {self.classes.summary}{predicted}'))
        self._add_sign(find_one_class(self.classes.only, self.scores.maps))
        self._add_sign(self.scores.sign)
        self._add_sign(self.facts.find_other_model())
        self._add_sign(find_ending(self._get_last_lines()))
        return self

    def _add_sign(self, sign: Optional[Piece]) -> None:
        if sign is not None:
            raised = LoggedException('', sign.searched, lines=[(sign.line, sign.text)])
            self.signs.append(LogError(sign.line, '', [raised]))

    def _get_last_lines(self) -> List[Tuple[int, str]]:
        rows = self._tail.rstrip(b'\n').split(b'\n')[-_BEFORE:]
        last = self.lines - (len(self._tail) - len(self._tail.rstrip(b'\n')) - 1)
        return [(last - len(rows) + 1 + place, read_line(raw).text) for place, raw in enumerate(rows)]

    def _take(self, piece: bytes) -> None:
        text = self._rest + piece
        end = text.rfind(b'\n') + 1
        self._rest = text[end:]
        if len(self._rest) > _LONGEST_LINE:  # a progress bar without end
            self._rest = self._rest[-LONGEST:]
        text = text[:end]
        if not text:
            return
        self.classes.take(text, self.lines + 1)
        self.scores.take(text, self.lines + 1)
        if self._read < HEAD or (b'guard' in text and not any(self.facts.find_kind('imported'))):
            self.facts.take(text.decode('utf-8', 'backslashreplace'), self.lines + 1)
        if self._read >= _BEGINNING and not self._open and not self._has_more(text):
            self.lines += text.count(b'\n')
            if self.troubles:
                self._pass(text)
        else:
            self._take_lines(text)
        self._read += len(text)
        self._tail = text[-_TAIL:]
        self._rows = []

    def _has_more(self, text: bytes) -> bool:
        """Return True if a piece contains one of ``_TRIGGERS``, and fewer than ``_TROUBLES`` errors are kept."""
        return len(self.troubles) < _TROUBLES and any(word in text for word in _TRIGGERS)

    def _take_lines(self, text: bytes) -> None:
        is_beginning = self._read < _BEGINNING
        shapes = self._shapes
        self._rows, self._first_row = text[:-1].split(b'\n'), self.lines + 1
        for raw in self._rows:
            self.lines += 1
            self._since += len(raw) + 1
            if is_beginning or self._open:
                self._take_line(read_line(raw))
                continue
            # Read only the first of lines that differ only in numbers: every thread of a kernel prints one.
            shape = raw.translate(None, b'0123456789')
            like = shapes.get(shape)
            if like is not None:
                like.times += 1
                self._restart_progress()
            elif shape not in shapes and any(word in raw for word in _TRIGGERS):
                self._take_like(raw, shape)
            elif self.troubles and any(word in raw for word in _PROGRESS_WORDS):
                self._see_progress(read_line(raw))

    def _take_like(self, raw: bytes, shape: bytes) -> None:
        """Read a line, and cache its error for all lines that differ from it only in digits."""
        self._bare = None
        self._take_line(read_line(raw))
        if len(self._shapes) < _SHAPES and len(shape) < 1000 and not self._open:
            self._shapes[shape] = self._bare

    # ---- progress: errors are dropped if training continues

    def _restart_progress(self) -> None:
        self._progress = self._since = 0
        self._has_finite_loss = False

    def _see_progress(self, line: OutputLine) -> None:
        if PROGRESS.search(line.text) and not _IS_NAN.search(line.text):
            self._progress += 1
            self._has_finite_loss |= bool(_IS_FINITE.search(line.text))
            if self._progress >= _ENOUGH_PROGRESS and (line.is_dated or self._since > _BUFFERED):
                self._forget()

    def _pass(self, text: bytes) -> None:
        self._progress += sum(text.count(word) for word in _PROGRESS_WORDS)
        self._since += len(text)
        self._has_finite_loss |= b'loss' in text
        if self._progress >= _ENOUGH_PROGRESS and self._since > _BUFFERED:
            self._forget()

    def _forget(self) -> None:
        # Lines of a validation have no loss: they do not show that a loss of nan is finite again.
        kept = [] if self._has_finite_loss else self.troubles
        self.troubles = [one for one in kept if any(_IS_NAN.search(raised.message) for raised in one.chain)]
        self._said.clear()
        self._shapes.clear()
        self.first_rank = ''

    def _add(self, error: LogError) -> None:
        self._restart_progress()
        if len(self.troubles) < _WITH_BEFORE:
            error.before = self._get_lines_before(error.line)
        if len(self.troubles) < _TROUBLES:
            self.troubles.append(error)

    def _get_lines_before(self, line: int) -> List[Tuple[int, str]]:
        place = line - self._first_row
        rows = self._rows[max(place - _BEFORE, 0) : max(place, 0)]
        if len(rows) < _BEFORE:
            rows = self._tail[:-1].split(b'\n')[-(_BEFORE - len(rows)) :] + rows
        # An error may be printed in the line of a progress bar, after its last state.
        return [(line - len(rows) + number, read_line(raw).text) for number, raw in enumerate(rows)]

    # ---- lines

    def _take_line(self, line: OutputLine) -> None:
        if self._read < _BEGINNING and len(self.beginning) < 400:
            self.beginning.append(line.text)
        opened = self._open.get(line.rank)
        if opened is not None and not opened.take(line, self.lines):
            del self._open[line.rank]
            opened = None
        if opened is not None:
            return
        text = line.text
        if HEADER.search(text):
            if len(self.troubles) >= _TROUBLES:
                return
            trouble = LogError(self.lines, line.rank, is_harmless=self._last_was_ignored)
            self._open[line.rank] = OpenTraceback(trouble, line)
            self._add(trouble)
        else:
            self._take_single(line)
        self._last_was_ignored = bool(IGNORED.match(text))

    def _take_single(self, line: OutputLine) -> None:
        text = line.text
        if 'first observed failure' in text:
            self._root_cause_lines = 6
        elif self._root_cause_lines:
            self._root_cause_lines -= 1
            named = re.match(r'\s*rank\s*:\s*(\d+)', text)
            if named:
                self.first_rank = named.group(1)
        single = LONE.match(text)
        if single and not line.is_dated and len(self.troubles) < _TROUBLES:
            raised = LoggedException(single.group('kind'), single.group('message'), lines=[(self.lines, text.strip())])
            trouble = LogError(self.lines, line.rank, [raised])
            self._open[line.rank] = OpenTraceback(trouble, line, is_raised=True)
            self._add(trouble)
        elif build_bare_pattern(True).search(text):
            if len(self.signs) < _TROUBLES and all(_NUMBERS.sub('', text) != one for one in self._signs):
                self._signs.append(_NUMBERS.sub('', text))
                self._add_sign(Piece(self.lines, text.strip(), text.strip()))
        elif build_bare_pattern().search(text) and not _WARNED.search(text):
            # Every thread of a kernel prints the same message with its own number.
            key = line.rank + _NUMBERS.sub('', text)
            if key in self._said:
                self._bare = self._said[key]
                self._bare.times += 1
                self._restart_progress()
            else:
                raised = LoggedException('', text.strip(), lines=[(self.lines, text.strip())])
                trouble = LogError(self.lines, line.rank, [raised])
                if len(self._said) < _TROUBLES:
                    self._said[key] = self._bare = trouble
                if text.startswith('Error'):  # nnU-Net gives the expected and found values in the next lines
                    self._open[line.rank] = OpenTraceback(trouble, line, is_raised=True)
                self._add(trouble)
        elif self.troubles:
            self._see_progress(line)


_READ = 1 << 20
_ENDINGS = ('.log', '.out', '.err', '.txt')
#: Maximum number of files that are read in the folder of a run.
_FILES = 64


def read_pieces(target: str) -> Iterator[bytes]:
    """Yield the content of a file, or of standard input for ``'-'``, piece by piece."""
    if target == '-':
        try:
            yield from iter(lambda: sys.stdin.buffer.read(_READ), b'')
        except OSError as error:  # closed, or a folder
            raise CannotRun(f'standard input cannot be read: {error.strerror or error}') from error
        return
    path = Path(target)
    if path.suffix == '.ipynb':
        raise CannotRun(
            f'{visible_name(target)} is a notebook: copy the output of its cell, and paste it into `mmguard explain -`'
        )
    if path.name.startswith(Path(FLIGHT).stem):
        yield from _read_flight_record(path)
    else:
        try:
            with open(path, 'rb') as file:
                yield from iter(lambda: file.read(_READ), b'')
        except OSError as error:
            raise CannotRun(f'{visible_name(target)} cannot be read: {error.strerror or error}') from error


def find_logs(folder: Path) -> List[Path]:
    """Return the logs and flight records of the newest run in or below a folder."""
    found = [path for path in folder.rglob('*') if path.suffix in _ENDINGS or path.name.startswith(Path(FLIGHT).stem)]
    files = [path for path in found if path.is_file() and path.stat().st_size]
    if not files:
        raise CannotRun(
            f'{visible_name(str(folder))}: no log below this folder ({", ".join(_ENDINGS)}, {FLIGHT}). You can also '
            f'pipe in the output of a training: `... 2>&1 | mmguard explain -`'
        )
    newest = max(files, key=lambda path: path.stat().st_mtime)
    together = [path for path in files if path.parent == newest.parent]
    return sorted(together, key=lambda path: (path.stat().st_mtime, str(path)))[-_FILES:]


def _read_flight_record(path: Path) -> Iterator[bytes]:
    try:
        flight = read_flight(str(path))
    except (OSError, ValueError):
        return  # `mmguard report` explains what is wrong with it
    if flight.exception is not None:
        yield mark_rank(flight.exception.traceback, flight.rank)


def mark_rank(traceback: str, rank: int) -> bytes:
    """Return a traceback with its rank before every line, in the format of torchrun."""
    return ''.join(f'[rank{rank}]: {line}\n' for line in traceback.splitlines()).encode('utf-8', 'replace')


def find_config(folder: Path) -> Optional[Path]:
    """Return the config that mmengine wrote next to a run's log, or ``None`` if such a file does not exist."""
    paths = (folder / name for name in ('vis_data/config.py', 'config.py'))
    return next((path for path in paths if path.is_file()), None)
