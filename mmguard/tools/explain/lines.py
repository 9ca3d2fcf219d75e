"""One line of a log: without colours, progress bars and the marks of ranks, loggers and schedulers."""

from __future__ import annotations

import re
from typing import NamedTuple

#: What is read of one line; an error says what it has to say in less.
LONGEST = 1 << 12

_COLOURS = re.compile(r'\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]')
_RANK = re.compile(
    r'\[(?:rank|default)?(\d{1,5})\]:[ ]?'  # torch, torchrun --tee
    r'|[ ]{0,3}(\d{1,5}):[ ](?=\s*(?:Traceback|File |\w{1,60}Error|[A-Z]|\s{3}))'  # srun --label
    r'|\([\w. ]{1,60}?[ ]?pid=(\d+)[^)]{0,60}\)[ ]?'  # ray
    r'|[\w.-]{1,60}[-_](\d{1,5})[ ]+\|[ ]'  # docker compose
)
_DATE = r'\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?'
_DATED = re.compile(
    rf'(?:\[{_DATE}[^\]]{{0,40}}\](?:\[[\w.]{{1,60}}\])*(?:[ ]-[ ])?|{_DATE}(?:[ ](?:stdout|stderr)[ ][FP])?'
    r'(?:[ ]-[ ][\w.]{1,60}[ ]-[ ][A-Z]{4,8}[ ]-)?|[IWEF]\d{4}[ ]\d\d:\d\d:\d\d\.\d+[ ]+\d+[ ][^\]\s]{1,200}\]):?[ ]?'
)


class Line(NamedTuple):
    """A line as a program wrote it.

    Attributes:
        text (str): It.
        rank (str): As its mark says; empty: without one.
        is_dated (bool): Whether a logger put the time in front.
    """

    text: str
    rank: str = ''
    is_dated: bool = False


def read_line(raw: bytes) -> Line:
    r"""A line without what surrounds it.

    Example:
        >>> read_line(b'[rank1]: \x1b[31mIndexError\x1b[0m: Target 7 is out of bounds.')
        Line(text='IndexError: Target 7 is out of bounds.', rank='1', is_dated=False)
        >>> read_line(b'2026/01/01 12:00:00 - mmengine - INFO - Iter(train) [50/100]')
        Line(text='Iter(train) [50/100]', rank='', is_dated=True)
    """
    raw = raw.rstrip(b'\r')
    # What a progress bar wrote over is seen by nobody.
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
