"""What went wrong in a log: exceptions with their chains, and lines that a system or a kernel wrote."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import List, NamedTuple


class Frame(NamedTuple):
    """A line of a traceback."""

    file: str
    number: int
    function: str
    code: str = ''

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
    """

    kind: str = ''
    message: str = ''
    frames: List[Frame] = field(default_factory=list)

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
    """

    line: int
    rank: str = ''
    chain: List[Raised] = field(default_factory=list)
    times: int = 1
    is_harmless: bool = False
