"""What went wrong in a log: exceptions with their chains, and lines that a system or a kernel wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Iterator, List, NamedTuple, Tuple


class Piece(NamedTuple):
    """Part of a log that patterns are searched in.

    Attributes:
        line (int): Its number, from 1.
        text (str): What is quoted.
        searched (str): What patterns see; a fact that follows from the line has words of its own.
    """

    line: int
    text: str
    searched: str


class Frame(NamedTuple):
    """A line of a traceback, and in which line of the log it is."""

    file: str
    number: int
    function: str
    code: str = ''
    line: int = 0

    def __str__(self) -> str:
        return f'{self.file}:{self.number} in {self.function}'

    @property
    def is_installed(self) -> bool:
        """Whether it stands in an installed package or in Python itself, and not in the user's own files."""
        return bool(re.search(r'site-packages|dist-packages|[/\\]lib[/\\]python\d|<frozen|<string>', self.file))


@dataclass
class Raised:
    """One exception.

    Args:
        kind (str): Its type, ``IndexError``.
        message (str): What it says; may have several lines.
        frames (list[Frame]): Of its traceback, the innermost last.
        lines (list[int]): Numbers of the lines of its message.
    """

    kind: str = ''
    message: str = ''
    frames: List[Frame] = field(default_factory=list)
    lines: List[int] = field(default_factory=list)

    @property
    def said(self) -> str:
        """What is searched for signatures: an assertion without words is what it asserts."""
        asserted = self.frames[-1].code if self.frames and self.kind == 'AssertionError' else ''
        said = f'{self.kind}: {self.message or asserted}' if self.kind else self.message
        return f'{said}\n{asserted}' if asserted and self.message else said

    @property
    def around(self) -> str:
        """Its traceback in one text."""
        return '\n'.join(f'{frame.file}:{frame.number} in {frame.function}\n{frame.code}' for frame in self.frames)

    @property
    def pieces(self) -> Iterator[Piece]:
        """Message and traceback, line by line."""
        for place, text in enumerate(self.said.split('\n')):
            line = self.lines[min(place, len(self.lines) - 1)] if self.lines else 0
            yield Piece(line, text if place or not self.kind else f'{self.kind}: {self.message}'.split('\n')[0], text)
        for frame in self.frames:
            path = f'{frame.file}:{frame.number} in {frame.function}'
            yield Piece(frame.line, path, path)
            if frame.code:
                yield Piece(frame.line + 1, frame.code, frame.code)


@dataclass
class Trouble:
    """What went wrong at one place of a log.

    Args:
        line (int): Where it begins, from 1.
        rank (str): Of the process; empty where nothing says.
        chain (list[Raised]): From the first exception to the one that was shown last. A line that is no exception is
            one without a type.
        times (int): How often the same was said.
        is_harmless (bool): Python ignored it itself.
        before (list[tuple]): The lines before it, with their numbers.
    """

    line: int
    rank: str = ''
    chain: List[Raised] = field(default_factory=list)
    times: int = 1
    is_harmless: bool = False
    before: List[Tuple[int, str]] = field(default_factory=list)
