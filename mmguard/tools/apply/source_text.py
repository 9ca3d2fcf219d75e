"""Configs as Python source: an indented layout, lines kept short where they can be."""

from __future__ import annotations

import keyword
import math
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

WIDTH = 110


class Code(NamedTuple):
    """Source that stands as it is, as ``_base_.train_pipeline``."""

    text: str


class Items(NamedTuple):
    """``opening`` + parts, separated by commas, + ``closing``; a part is a prefix (``key=``) and what follows it."""

    opening: str
    parts: List[Tuple[str, Source]]
    closing: str


Source = Union[Code, Items]


def source_of(value: Any) -> Source:
    """The source of a value: dicts as ``dict(...)``, lists, tuples, and what ``repr`` writes.

    Raises:
        ValueError: A value without source (a function, an object).
    """
    if isinstance(value, (Code, Items)):
        return value
    if isinstance(value, dict):
        return dict_source(value)
    if isinstance(value, list):
        return Items('[', [('', source_of(item)) for item in value], ']')
    if isinstance(value, tuple):
        return Items('(', [('', source_of(item)) for item in value], ',)' if len(value) == 1 else ')')
    if isinstance(value, (set, frozenset)):
        items = Items('{', [('', source_of(item)) for item in sorted(value, key=repr)], '}')
        if isinstance(value, frozenset):
            return Items('frozenset(', [('', items)] if value else [], ')')
        return items if value else Code('set()')
    if isinstance(value, float) and not math.isfinite(value):
        return Code(f"float('{value}')")
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return Code(repr(value))
    raise ValueError(f'{value!r} of type {type(value).__name__} has no source text')


def dict_source(value: Dict[Any, Any], first: Sequence[Tuple[str, Source]] = ()) -> Items:
    """``dict(a=1)``, or ``{'a b': 1}`` where a key is no name. ``first`` stands before the keys."""
    if all(isinstance(key, str) and is_name(key) for key in value):
        return Items('dict(', [*first, *((f'{key}=', source_of(item)) for key, item in value.items())], ')')
    spread = [(f'**{prefix}', part) for prefix, part in first]
    return Items('{', [*spread, *((f'{key!r}: ', source_of(item)) for key, item in value.items())], '}')


def is_name(key: str) -> bool:
    """Whether a key may stand as ``key=`` and ``.key``: ``lambda`` may not."""
    return key.isidentifier() and not keyword.iskeyword(key)


def layout(source: Source, before: int = 0, indent: int = 0) -> str:
    """Lays a source out.

    Args:
        source (Code or Items): What to lay out.
        before (int): Columns taken on the first line.
        indent (int): Columns that the lines after it start at.
    """
    line = one_line(source)
    if isinstance(source, Code) or not source.parts or before + len(line) <= WIDTH:
        return line
    inner = indent + 4
    closing = source.closing.lstrip(',')
    if all(isinstance(part, Code) and not prefix for prefix, part in source.parts):
        return '\n'.join([source.opening, *_filled(source.parts, inner), ' ' * indent + closing])
    lines = [f'{" " * inner}{prefix}{layout(part, inner + len(prefix) + 1, inner)},' for prefix, part in source.parts]
    return '\n'.join([source.opening, *lines, ' ' * indent + closing])


def _filled(parts: List[Tuple[str, Source]], indent: int) -> List[str]:
    """Plain items, as many to a line as fit."""
    lines = [' ' * indent]
    for _, part in parts:
        item = one_line(part) + ','
        if lines[-1].strip() and len(lines[-1]) + 1 + len(item) > WIDTH:
            lines.append(' ' * indent)
        lines[-1] += f' {item}' if lines[-1].strip() else item
    return lines


def one_line(source: Source) -> str:
    if isinstance(source, Code):
        return source.text
    return source.opening + ', '.join(prefix + one_line(part) for prefix, part in source.parts) + source.closing


def statement(name: str, source: Source) -> str:
    """``name = ...``"""
    return f'{name} = {layout(source, len(name) + 3)}'


def full_text(tree: Dict[str, Any]) -> str:
    """A whole config, one statement per key.

    Raises:
        ValueError: A value without source.
    """
    lines = []
    for key, value in tree.items():
        try:
            lines.append(statement(key, source_of(value)))
        except ValueError as error:
            raise ValueError(f'{key}: {error}') from error
    return '\n'.join(lines) + '\n'
