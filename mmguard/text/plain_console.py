"""The part of rich that the scan and the report draw with, without colours: stands in where rich is not installed."""

from __future__ import annotations

import shutil
import sys
from itertools import zip_longest
from typing import Any, List, Tuple, Union

from mmguard.text.visible import visible

_WIDEST = 100


class Text:
    """A string that can be added to; styles are left out.

    Example:
        >>> text = Text('MG102 ', style='bold red')
        >>> text.append('one class too many')
        >>> print(text)
        MG102 one class too many
    """

    def __init__(self, text: str = '', **style: Any) -> None:
        self.plain = text

    @classmethod
    def assemble(cls, *parts: Union[str, Text, Tuple[str, str]], **style: Any) -> Text:
        """Of strings, and of pairs (string, style)."""
        return cls(''.join(part[0] if isinstance(part, tuple) else str(part) for part in parts))

    def append(self, text: Union[str, Text], style: Any = None) -> None:
        self.plain += str(text)

    def __str__(self) -> str:
        return self.plain


class Table:
    r"""Columns side by side, each as wide as its widest cell.

    Example:
        >>> table = Table(title='worst files')
        >>> table.add_column('file')
        >>> table.add_column('invalid', justify='right')
        >>> table.add_row('a.png\nb.png', '1,201')
        >>> print(table)
        worst files
        file   invalid
        a.png    1,201
        b.png
    """

    def __init__(self, *headings: str, title: str = '', show_header: bool = True, **style: Any) -> None:
        self._title = title
        self._show_header = show_header
        self._headings: List[str] = list(headings)
        self._right: List[bool] = [False] * len(headings)
        self._rows: List[List[str]] = []

    def add_column(self, heading: str = '', justify: str = 'left', **style: Any) -> None:
        self._headings.append(heading)
        self._right.append(justify == 'right')

    def add_row(self, *cells: Any, **style: Any) -> None:
        self._rows.append([str(cell) for cell in cells])

    def __str__(self) -> str:
        rows = [self._headings, *self._rows] if self._show_header else self._rows
        # A cell of several lines takes as many rows.
        rows = [list(line) for row in rows for line in zip_longest(*(cell.split('\n') for cell in row), fillvalue='')]
        widths = [max(len(row[place]) if place < len(row) else 0 for row in rows) for place in range(len(self._right))]
        lines = [self._title] if self._title else []
        for row in rows:
            cells = [
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, self._right)
            ]
            lines.append('  '.join(cells).rstrip())
        return '\n'.join(lines)


class Console:
    """Prints to standard output, or to standard error."""

    def __init__(self, file: Any = None, stderr: bool = False, **style: Any) -> None:
        self._file = file
        self._stderr = stderr
        self.width = min(shutil.get_terminal_size().columns, _WIDEST)

    def print(self, *parts: Any, **style: Any) -> None:
        file = self._file or (sys.stderr if self._stderr else sys.stdout)
        text = visible(' '.join(str(part) for part in parts), limit=sys.maxsize)
        encoding = getattr(file, 'encoding', None) or 'utf-8'
        # A terminal that has no block characters must not end a scan.
        print(text.encode(encoding, 'backslashreplace').decode(encoding), file=file)

    def rule(self, title: Any = '', **style: Any) -> None:
        """A line with a title in it."""
        self.print(f' {title} '.center(self.width, '-') if str(title) else '-' * self.width)
