"""Values of users and of their files in messages: cut before they are spelled out."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Sequence


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
