"""Errors in a log: exceptions with their chains, and lines that a system or a kernel wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, List, NamedTuple, Tuple


class Piece(NamedTuple):
    """Part of a log: its line, the quoted text, and the text for patterns (which differs for a fact that follows from
    it)."""

    line: int
    text: str
    searched: str


class Frame(NamedTuple):
    """A line of a traceback, with its line and its text in the log."""

    file: str
    number: int
    function: str
    code: str = ''
    line: int = 0
    text: str = ''

    def __str__(self) -> str:
        return f'{self.file}:{self.number} in {self.function}'

    @property
    def is_installed(self) -> bool:
        """Return True if it is in an installed package or in Python itself, and not in the user's own files."""
        return bool(re.search(r'site-packages|dist-packages|[/\\]lib[/\\]python\d|<frozen|<string>', self.file))


@dataclass
class Raised:
    """One exception: its type, message, traceback (the innermost frame last), and the lines of its message."""

    kind: str = ''
    message: str = ''
    frames: List[Frame] = field(default_factory=list)
    lines: List[int] = field(default_factory=list)

    @property
    def said(self) -> str:
        """The text that is searched for signatures; an assertion without a message has its condition as message."""
        asserted = self.frames[-1].code if self.frames and self.kind == 'AssertionError' else ''
        said = f'{self.kind}: {self.message or asserted}' if self.kind else self.message
        return f'{said}\n{asserted}' if asserted and self.message else said

    @property
    def around(self) -> str:
        """Its traceback as one text."""
        return '\n'.join(f'{frame}\n{frame.code}' for frame in self.frames)

    @property
    def pieces(self) -> Iterator[Piece]:
        """Yield message and traceback, line by line."""
        for place, text in enumerate(self.said.split('\n')):
            line = self.lines[min(place, len(self.lines) - 1)] if self.lines else 0
            yield Piece(line, text if place or not self.kind else f'{self.kind}: {self.message}'.split('\n')[0], text)
        for frame in self.frames:
            yield Piece(frame.line, frame.text or str(frame), str(frame))
            if frame.code:
                yield Piece(frame.line + 1, frame.code, frame.code)


@dataclass
class Trouble:
    """Error at one place of a log.

    Args:
        line (int): Its first line, from 1.
        rank (str): Rank of the process; empty if unknown.
        chain (list[Raised]): From the first exception to the one shown last. A line that is not an exception is
            an entry without a type.
        times (int): Number of times that it was reported.
        is_harmless (bool): True if Python ignored it itself.
        before (list[tuple]): The lines before it, with their numbers.
    """

    line: int
    rank: str = ''
    chain: List[Raised] = field(default_factory=list)
    times: int = 1
    is_harmless: bool = False
    before: List[Tuple[int, str]] = field(default_factory=list)


#: Maximum number of bytes read per line; the relevant part of an error is shorter.
LONGEST = 1 << 12

_COLOURS = re.compile(r'\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]')
_RANK = re.compile(
    r'\[(?:rank|default)?(\d{1,5})\]:[ ]?'  # torch, torchrun --tee
    r'|[ ]{0,3}(\d{1,5}):[ ](?=\s*(?:Traceback|File |\w{1,60}Error|[A-Z]|\s{3}))'  # srun --label
    r'|\([\w. ]{1,60}?[ ]?pid=(\d+)[^)]{0,60}\)[ ]?'  # ray
    r'|[\w.-]{1,60}[-_](\d{1,5})[ ]+\|[ ]'  # docker compose
)
_DATE = r'(?:\d{4}[-/])?\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?'
_DATED = re.compile(
    rf'(?:\[{_DATE}[^\]]{{0,40}}\](?:\[[\w.]{{1,60}}\])*(?:[ ]-[ ])?|{_DATE}(?:[ ](?:stdout|stderr)[ ][FP])?'
    r'(?:[ ]-[ ][\w.]{1,60}[ ]-[ ][A-Z]{4,8}[ ]-)?|[IWEF]\d{4}[ ]\d\d:\d\d:\d\d\.\d+[ ]+\d+[ ][^\]\s]{1,200}\]):?[ ]?'
)


class Line(NamedTuple):
    """A line as a program wrote it, without the mark of its rank and the time that a logger put in front."""

    text: str
    rank: str = ''
    is_dated: bool = False


def read_line(raw: bytes) -> Line:
    r"""Return a line without its rank, time and colours.

    Example:
        >>> read_line(b'[rank1]: \x1b[31mIndexError\x1b[0m: Target 7 is out of bounds.')
        Line(text='IndexError: Target 7 is out of bounds.', rank='1', is_dated=False)
        >>> read_line(b'2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [50/100]')
        Line(text='Iter(train) [50/100]', rank='', is_dated=True)
    """
    raw = raw.rstrip(b'\r')
    # Text that a progress bar has overwritten is not visible.
    raw = raw[raw.rfind(b'\r') + 1 :][:LONGEST]
    text = raw.decode('utf-8', 'backslashreplace')
    if '\x1b' in text:
        text = _COLOURS.sub('', text)
    rank, is_dated = '', False
    for _ in range(4):
        marked = _RANK.match(text)
        if marked and not rank:
            rank = next(filter(None, marked.groups()))
            text = text[marked.end() :]
            continue
        dated = _DATED.match(text)
        if not dated:
            break
        is_dated = True
        text = text[dated.end() :]
    return Line(text, rank, is_dated)
