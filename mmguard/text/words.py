"""Numbers and lists in sentences."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Optional, Sequence


def counted(number: int, one: str, many: Optional[str] = None) -> str:
    """A number and what it counts.

    Example:
        >>> counted(1, 'file'), counted(1204, 'file'), counted(0, 'class')
        ('1 file', '1,204 files', '0 classes')
    """
    return f'{number:,} {plural(number, one, many)}'


def plural(number: int, one: str, many: Optional[str] = None) -> str:
    """Return a noun after its number; ``many`` where no rule of English makes its plural.

    Example:
        >>> plural(1, 'entry'), plural(2, 'entry'), plural(2, 'box'), plural(2, 'key'), plural(2, 'px')
        ('entry', 'entries', 'boxes', 'keys', 'px')
        >>> plural(3, 'kind of stuff', 'kinds of stuff')
        'kinds of stuff'
    """
    if number == 1 or one.endswith('px'):
        return one
    if many is not None:
        return many
    if re.search('[^aeiou]y$', one):
        return f'{one[:-1]}ies'
    return f'{one}es' if re.search('(s|x|z|ch|sh)$', one) else f'{one}s'


def first_of(lines: Sequence[str], most: int = 10) -> List[str]:
    """The first lines, and how many more there are.

    Example:
        >>> first_of(['a', 'b', 'c', 'd'], 2)
        ['a', 'b', '... and 2 more']
    """
    more = len(lines) - most
    return [*lines[:most], *([f'... and {more:,} more'] if more > 0 else [])]


def short(value: object, length: int = 60) -> str:
    """Return a value as a message shows it: one line, not longer than ``length``.

    No more of a list is spelled out than is shown, however large or deep it is, or often it refers to its parts.

    Example:
        >>> short('a' * 100, 10), short({'a': [1, 2]})
        ("'aaaaaa...", "{'a': [1, 2]}")
    """
    text = ''
    for piece in _pieces(value, length):
        text += piece
        if len(text) > length:
            return f'{text[: length - 3]}...'
    return text


_ENDS: Dict[type, Sequence[str]] = {list: '[]', tuple: '()', set: '{}', frozenset: ('frozenset({', '})')}


def _pieces(value: Any, length: int) -> Iterator[str]:
    if isinstance(value, (str, bytes)):
        yield repr(value[: length + 1])
    elif isinstance(value, dict):
        yield '{'
        for number, (key, inner) in enumerate(value.items()):
            yield ', ' if number else ''
            yield from _pieces(key, length)
            yield ': '
            yield from _pieces(inner, length)
        yield '}'
    elif type(value) in _ENDS and value:
        begin, end = _ENDS[type(value)]
        yield begin
        for number, inner in enumerate(value):
            yield ', ' if number else ''
            yield from _pieces(inner, length)
        yield ',)' if isinstance(value, tuple) and len(value) == 1 else end
    else:
        try:
            yield ' '.join(repr(value).split())
        except (ValueError, RecursionError):  # an int of thousands of digits
            yield f'a {type(value).__name__}'
