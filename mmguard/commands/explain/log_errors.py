"""Parser of the errors in a log: tracebacks, chained exceptions and other error lines."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Iterator, List, NamedTuple, Optional, Pattern, Tuple

from mmguard.findings.signatures import SIGN, read_signatures
from mmguard.text import hide_credentials


class Piece(NamedTuple):
    """Line of a log: its number, the ``text`` to quote, and what patterns search: the text, or an inferred fact."""

    line: int
    text: str
    searched: str


class Frame(NamedTuple):
    """Entry of a traceback; ``line`` and ``code_line`` are line numbers of the log; ``text`` is the logged line."""

    file: str
    number: int
    function: str
    code: str = ''
    line: int = 0
    text: str = ''
    code_line: int = 0

    def __str__(self) -> str:
        return f'{self.file}:{self.number} in {self.function}'

    @property
    def is_installed(self) -> bool:
        """True if the file belongs to an installed package or to Python itself."""
        return bool(re.search(r'site-packages|dist-packages|[/\\]lib[/\\]python\d|<frozen|<string>', self.file))


@dataclass
class LoggedException:
    """Exception in a log: type, message, frames (the innermost last), and the numbered lines of the message."""

    kind: str = ''
    message: str = ''
    frames: List[Frame] = field(default_factory=list)
    lines: List[Tuple[int, str]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text that signatures search: the type, the message, and the condition of a failed assertion."""
        asserted = self.frames[-1].code if self.frames and self.kind == 'AssertionError' else ''
        said = f'{self.kind}: {self.message or asserted}' if self.kind else self.message
        return f'{said}\n{asserted}' if asserted and self.message else said

    @property
    def around(self) -> str:
        """Traceback as a single text."""
        return '\n'.join(f'{frame}\n{frame.code}' for frame in self.frames)

    @property
    def pieces(self) -> Iterator[Piece]:
        """Yield message and traceback, line by line."""
        for place, text in enumerate(self.text.split('\n')):
            line, quoted = self.lines[min(place, len(self.lines) - 1)] if self.lines else (0, '')
            yield Piece(line, quoted, text)
        for frame in self.frames:
            yield Piece(frame.line, frame.text, str(frame))
            if frame.code:
                yield Piece(frame.code_line, frame.code, frame.code)


@dataclass
class LogError:
    """Error in a log: a chain of exceptions, or a single line."""

    line: int  #: Number of the error's first line, counted from 1.
    rank: str = ''  #: Rank of the process; empty if unknown.
    #: Exceptions in the order of the log. A line that is not an exception is an entry with an empty ``kind``.
    chain: List[LoggedException] = field(default_factory=list)
    times: int = 1  #: Number of times that the error was reported.
    is_harmless: bool = False  #: True if Python itself ignored the error.
    before: List[Tuple[int, str]] = field(default_factory=list)  #: Numbered lines before the error.


#: Maximum number of bytes read per line; the relevant part of an error is shorter.
LONGEST = 1 << 12

_COLORS = re.compile(r'\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]')
_RANK = re.compile(r'\[(?:rank|default)?(\d{1,5})\]:[ ]?')  # torch, torchrun --tee
_DATE = r'(?:\d{4}[-/])?\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?'
_DATED = re.compile(
    rf'(?:\[{_DATE}[^\]]{{0,40}}\](?:\[[\w.]{{1,60}}\])*(?:[ ]-[ ])?|{_DATE}'
    r'(?:[ ]-[ ][\w.]{1,60}[ ]-[ ][A-Z]{4,8}[ ]-)?|[IWEF]\d{4}[ ]\d\d:\d\d:\d\d\.\d+[ ]+\d+[ ][^\]\s]{1,200}\]):?[ ]?'
)


class OutputLine(NamedTuple):
    """Line of a program's output, without the prefixes of rank and logger."""

    text: str
    rank: str = ''
    is_dated: bool = False


def read_line(raw: bytes) -> OutputLine:
    r"""Decode a line, and remove its colors and the prefixes of rank and logger.

    Example:
        >>> read_line(b'[rank1]: \x1b[31mIndexError\x1b[0m: Target 7 is out of bounds.')
        OutputLine(text='IndexError: Target 7 is out of bounds.', rank='1', is_dated=False)
        >>> read_line(b'2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [50/100]')
        OutputLine(text='Iter(train) [50/100]', rank='', is_dated=True)
    """
    raw = raw.rstrip(b'\r')
    # Skip text that a progress bar has overwritten.
    raw = raw[raw.rfind(b'\r') + 1 :][:LONGEST]
    text = raw.decode('utf-8', 'backslashreplace')
    if '\x1b' in text:
        text = _COLORS.sub('', text)
    rank, is_dated = '', False
    for _ in range(4):
        marked = _RANK.match(text)
        if marked and not rank:
            rank = marked.group(1)
            text = text[marked.end() :]
            continue
        dated = _DATED.match(text)
        if not dated:
            break
        is_dated = True
        text = text[dated.end() :]
    return OutputLine(hide_credentials(text), rank, is_dated)


#: Maximum number of frames of a traceback, and of lines of a message, that are kept.
_FRAMES, _MESSAGE_LINES = 120, 40
PROGRESS = re.compile(
    r'\b(?:[Ee]poch|[Ii]ter(?:ation)?|[Ss]tep|train_loss|val_loss)\b\W{0,3}(?:\((?:train|val|test)\))?\W*\d'
    r'|\d(?:it/s|s/it)\b|\bloss: -?\d'
)
HEADER = re.compile(r'Traceback \(most recent call last\)')
IGNORED = re.compile(r'^(?:Exception ignored in|--- Logging error ---)')
#: Pattern of an exception without a traceback.
LONE = re.compile(r'^(?:E\s+)?(?P<kind>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)): ?(?P<message>.*)$')
_NOTEBOOK_HEADER = re.compile(r'^([A-Za-z_][\w.]*)\s{2,}Traceback \(most recent call last\)')
_FRAME = re.compile(r'^\W{0,4}\s*File "(.+?)", line (\d+)(?:, in (.+))?$')
_NOTEBOOK_FRAME = re.compile(
    r'^(?:File )?([~/\w.<][^:]*?\.py|<ipython[^>]*>|Cell In\s?\[\d+\]|In \[\d+\])'
    r'(?:[:,] ?(?:line )?(\d+))?(?:,? in (<[^>]{1,80}>|[\w.]+).*)?$'
)
_ARROW = re.compile(r'^-+> ?(\d+) (.*)$')
_RAISED = re.compile(r'^\W{0,3}([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::(?:\s(.*))?)?$')
_JOINED = re.compile(
    r'During handling of the above exception|The above exception was the direct cause|Original Traceback'
    r'|terminated with the following error'
)


@lru_cache(maxsize=None)
def build_bare_pattern(signs: bool = False) -> Pattern[str]:
    """Return a pattern for all known errors (or signs, if ``signs`` is true) that are lines without an exception."""
    bare = [signature for signature in read_signatures() if signature.bare]
    patterns = dict.fromkeys(signature.pattern for signature in bare if (signature.stage == SIGN) is signs)
    return re.compile('|'.join(f'(?:{pattern})' for pattern in patterns), re.MULTILINE)


class OpenTraceback:
    """Traceback of a log, which is read line by line."""

    def __init__(self, trouble: LogError, line: OutputLine, is_raised: bool = False) -> None:
        self.trouble = trouble
        self.is_dated = line.is_dated
        self.is_raised = is_raised
        self.is_joined = False
        self.lines = self.blank = self.number = 0
        if not is_raised:
            self._begin(line.text)

    def take(self, line: OutputLine, number: int) -> bool:
        """Add a line of the log; return ``False`` if the line is not part of this traceback."""
        text = line.text
        self.number = number
        if line.is_dated and not self.is_dated:
            return not self.is_raised  # a logger of another thread
        if HEADER.search(text):
            if self.is_raised and not self.is_joined and 'Original Traceback' not in text:
                return False
            # The previous one did not end: a chain, or processes without a rank prefix that write at the same time.
            self._begin(text)
            return True
        if _JOINED.search(text):
            self.is_joined = True
            return True
        return self._add_to_message(text) if self.is_raised else self._add_to_frames(text)

    def _begin(self, text: str) -> None:
        named = _NOTEBOOK_HEADER.match(text)
        self.trouble.chain.append(LoggedException(named.group(1) if named else ''))
        self.is_raised = self.is_joined = False
        self.lines = self.blank = 0

    def _add_to_frames(self, text: str) -> bool:
        raised = self.trouble.chain[-1]
        frames = raised.frames
        frame = self._read_frame(text)
        if frame is not None:
            del frames[_FRAMES - 1 :]  # the innermost frames matter most
            frames.append(frame)
            return True
        arrow = _ARROW.match(text)
        if arrow and frames:
            frames[-1] = frames[-1]._replace(
                number=int(arrow.group(1)), code=arrow.group(2).strip(), code_line=self.number
            )
            return True
        if text[:1] in (' ', '\t', '', '|', '│', '╭', '╰', '-', '+', '^', '~'):
            code = text.strip(' \t|│')
            if frames and code and not frames[-1].code and code[0] not in '^~':
                frames[-1] = frames[-1]._replace(code=code, code_line=self.number)
            self.lines += 1
            return self.lines < 4000
        found = _RAISED.match(text)
        if found and (found.group(1) == raised.kind or _is_type(found.group(1))):
            raised.kind, raised.message = found.group(1), (found.group(2) or '').strip()
            raised.lines = [(self.number, text.strip())]
            self.is_raised = True
            self.lines = 0
        self.lines += 1
        return self.lines < 400

    def _read_frame(self, text: str) -> Optional[Frame]:
        found = _FRAME.match(text.rstrip()) or _NOTEBOOK_FRAME.match(text)
        if not found:
            return None
        file, line, name = found.groups()
        return Frame(file, int(line or 0), name or '<module>', line=self.number, text=text.strip())

    def _add_to_message(self, text: str) -> bool:
        """Add a line to a message; return ``False`` if the line does not belong to the message."""
        if self.is_joined:
            return not text.strip() or self.lines < _MESSAGE_LINES
        if not text.strip():
            self.blank += 1
            return self.blank < 3
        self.lines += 1
        raised = self.trouble.chain[-1]
        is_other = PROGRESS.search(text) or IGNORED.match(text) or build_bare_pattern().search(text) or LONE.match(text)
        if self.lines > _MESSAGE_LINES or (is_other and not raised.message.endswith(':')):
            return False
        if self.blank and not text[:1].isspace() and self.lines > 12:
            return False
        raised.message = f'{raised.message}\n{text}'[:8000]
        raised.lines.append((self.number, text.strip()))
        return True


def _is_type(name: str) -> bool:
    last = name.rpartition('.')[2]
    return '.' in name or last[:1].isupper() or last == 'error'
