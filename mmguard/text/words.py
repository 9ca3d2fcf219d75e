"""Numbers, lists and values in sentences."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterator, List, Optional, Sequence


def counted(number: int, one: str, many: Optional[str] = None) -> str:
    """Return a number with its noun.

    Example:
        >>> counted(1, 'file'), counted(1204, 'file'), counted(0, 'class')
        ('1 file', '1,204 files', '0 classes')
    """
    return f'{number:,} {plural(number, one, many)}'


def plural(number: int, one: str, many: Optional[str] = None) -> str:
    """Return a noun after its number; ``many`` for irregular plurals.

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
    """Return the first lines and the number of the others.

    Example:
        >>> first_of(['a', 'b', 'c', 'd'], 2)
        ['a', 'b', '... and 2 more']
    """
    more = len(lines) - most
    return [*lines[:most], *([f'... and {more:,} more'] if more > 0 else [])]


def short(value: object, length: int = 60) -> str:
    """Shorten a value for a message: one line of at most ``length`` characters.

    Only the part of a list that is shown is formatted, however large, deep or self-referential it is.

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
