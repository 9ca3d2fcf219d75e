"""A config that inherits from another and contains only the differences."""

from __future__ import annotations

import keyword
import math
from difflib import SequenceMatcher
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple, Union

from mmguard.config.tree import Path

#: Attributes of ConfigDict itself.
_OF_DICTS = frozenset(dir(dict)) | {'to_dict', 'merge', 'build_lazy', 'lazy'}

_COMMENTS = {
    'custom_imports': '# Registers the guards.',
    'custom_hooks': '# Reports what was skipped: in the log, in label_guard.jsonl.',
    'model': '# Losses that no label can crash. All other arguments stay as they are.',
}
_FIRST = ('custom_imports', 'custom_hooks', 'model')


def write_overlay(base: Union[str, Code], old: Dict[str, Any], new: Dict[str, Any], guards: bool = True) -> str:
    """Return a config text with the differences from ``old``, which ``base`` loads; comments explain the guards."""
    gone = [key for key in old if key not in new]
    if gone:
        raise ValueError(f'inheritance cannot remove {", ".join(gone)}')
    changed = [key for key in new if key not in old or old[key] != new[key]]
    # Pipelines first: the data sets then name them.
    ordered = [key for key in _FIRST if key in changed]
    ordered += [key for key in changed if key not in ordered and isinstance(new[key], list)]
    ordered += [key for key in changed if key not in ordered]
    lines = [f'_base_ = [{join_line(write_source(base))}]', '']
    named: List[Tuple[str, Any]] = []
    for key in ordered:
        if guards and key in _COMMENTS:
            lines.append(_COMMENTS[key])
        lines.append(write_statement(key, _Difference(named).merge(old.get(key, _ABSENT), new[key], (key,))))
        if isinstance(new[key], list) and key not in _FIRST:
            named.append((key, new[key]))
    return '\n'.join(lines) + '\n'


_ABSENT = object()


class _Difference:
    """Writer of new values in terms of old ones and of names already in the text."""

    def __init__(self, names: List[Tuple[str, Any]]) -> None:
        self.named = names

    def merge(self, old: Any, new: Any, path: Path) -> Source:
        """Return what mmengine has to merge into ``old`` to give ``new``."""
        if not isinstance(old, dict) or not isinstance(new, dict):
            return self.write_whole(old, new, path)
        if all(key in new for key in old):
            return write_dict(
                {k: self.merge(old.get(k, _ABSENT), v, (*path, k)) for k, v in new.items() if old.get(k, _ABSENT) != v}
            )
        return write_dict({'_delete_': True, **{k: self._refer(old, k, v, path) for k, v in new.items()}})

    def _refer(self, old: Dict[str, Any], key: str, value: Any, path: Path) -> Source:
        known = old.get(key, _ABSENT)
        if value in (known, old):
            return Code(write_reference((*path, key) if value == known else path))
        return self.write_whole(known, value, (*path, key))

    def write_whole(self, old: Any, new: Any, path: Path) -> Source:
        """Write out ``new`` in full, with references to the parts that it shares with ``old``."""
        for name, value in self.named:
            if value == new:
                return Code(name)
        if isinstance(old, list) and isinstance(new, list):
            return self._splice(old, new, path)
        if not isinstance(new, dict):
            return write_source(new)
        is_wrapper = any(value == old for value in new.values())
        is_update = not is_wrapper and isinstance(old, dict) and all(key in new for key in old)
        if is_update and all(isinstance(key, str) and key.isidentifier() for key in new):
            changes = {
                k: self.write_whole(old.get(k, _ABSENT), v, (*path, k))
                for k, v in new.items()
                if old.get(k, _ABSENT) != v
            }
            return write_dict(changes, first=[('', Code(write_reference(path)))])
        return write_source({k: Code(write_reference(path)) if v == old else v for k, v in new.items()})

    def _splice(self, old: List[Any], new: List[Any], path: Path) -> Source:
        parts: List[Tuple[str, Source]] = []
        matcher = SequenceMatcher(None, [repr(v) for v in old], [repr(v) for v in new], autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == 'equal':
                parts.append(_build_slice_source(write_reference(path), a, b, len(old)))
                continue
            for number in range(c, d):
                # Items that were changed in place keep their order; the rest are new.
                twin = a + number - c
                is_twin = twin < b and _is_alike(old[twin], new[number])
                source = (
                    self.write_whole(old[twin], new[number], (*path, twin)) if is_twin else write_source(new[number])
                )
                parts.append(('', source))
        return Items('[', parts, ']')


def _build_slice_source(name: str, start: int, end: int, length: int) -> Tuple[str, Source]:
    """Return the items of a list from ``start`` to ``end``."""
    if (start, end) == (0, length):
        return '*', Code(name)
    if end - start == 1:
        return '', Code(f'{name}[{start}]')
    return '*', Code(f'{name}[{start or ""}:{"" if end == length else end}]')


def _is_alike(old: Any, new: Any) -> bool:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    return all(key in new for key in old) or any(value == old for value in new.values())


def write_reference(path: Path) -> str:
    """Return a reference such as ``_base_.model.heads[0]``.

    Example:
        >>> write_reference(('model', 'heads', 0, 'items'))
        "_base_.model.heads[0]['items']"
    """
    text = '_base_'
    for key in path:
        is_plain = isinstance(key, str) and is_name(key) and key not in _OF_DICTS
        text += f'.{key}' if is_plain else f'[{key!r}]'
    return text


WIDTH = 110


class Code(NamedTuple):
    """Source code that is kept verbatim, such as ``_base_.train_pipeline``."""

    text: str


class Items(NamedTuple):
    """``opening`` + parts, separated by commas, + ``closing``; a part is a prefix (``key=``) and its value."""

    opening: str
    parts: List[Tuple[str, Source]]
    closing: str


Source = Union[Code, Items]


def write_source(value: Any) -> Source:
    """Return the source code of plain data or of what ``repr`` round-trips; raise ``ValueError`` for others."""
    if isinstance(value, (Code, Items)):
        return value
    if isinstance(value, dict):
        return write_dict(value)
    if isinstance(value, list):
        return Items('[', [('', write_source(item)) for item in value], ']')
    if isinstance(value, tuple):
        return Items('(', [('', write_source(item)) for item in value], ',)' if len(value) == 1 else ')')
    if isinstance(value, (set, frozenset)):
        items = Items('{', [('', write_source(item)) for item in sorted(value, key=repr)], '}')
        if isinstance(value, frozenset):
            return Items('frozenset(', [('', items)] if value else [], ')')
        return items if value else Code('set()')
    if isinstance(value, float) and not math.isfinite(value):
        return Code(f"float('{value}')")
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return Code(repr(value))
    raise ValueError(f'{value!r} of type {type(value).__name__} has no source text')


def write_dict(value: Dict[Any, Any], first: Sequence[Tuple[str, Source]] = ()) -> Items:
    """Write ``dict(a=1)``, or ``{'a b': 1}`` if a key is not a name. ``first`` comes before the keys."""
    if all(isinstance(key, str) and is_name(key) for key in value):
        return Items('dict(', [*first, *((f'{key}=', write_source(item)) for key, item in value.items())], ')')
    spread = [(f'**{prefix}', part) for prefix, part in first]
    return Items('{', [*spread, *((f'{key!r}: ', write_source(item)) for key, item in value.items())], '}')


def is_name(key: str) -> bool:
    """Return True if a key can be written as ``key=`` and ``.key``: ``lambda`` cannot."""
    return key.isidentifier() and not keyword.iskeyword(key)


def lay_out(source: Source, before: int = 0, indent: int = 0) -> str:
    """Return lines that start at ``indent``; ``before`` columns of the first line are occupied."""
    line = join_line(source)
    if isinstance(source, Code) or not source.parts or before + len(line) <= WIDTH:
        return line
    inner = indent + 4
    closing = source.closing.lstrip(',')
    if all(isinstance(part, Code) and not prefix for prefix, part in source.parts):
        return '\n'.join([source.opening, *_fill_lines(source.parts, inner), ' ' * indent + closing])
    lines = [f'{" " * inner}{prefix}{lay_out(part, inner + len(prefix) + 1, inner)},' for prefix, part in source.parts]
    return '\n'.join([source.opening, *lines, ' ' * indent + closing])


def _fill_lines(parts: List[Tuple[str, Source]], indent: int) -> List[str]:
    """Fill lines with plain items."""
    lines = [' ' * indent]
    for _, part in parts:
        item = join_line(part) + ','
        if lines[-1].strip() and len(lines[-1]) + 1 + len(item) > WIDTH:
            lines.append(' ' * indent)
        lines[-1] += f' {item}' if lines[-1].strip() else item
    return lines


def join_line(source: Source) -> str:
    if isinstance(source, Code):
        return source.text
    return source.opening + ', '.join(prefix + join_line(part) for prefix, part in source.parts) + source.closing


def write_statement(name: str, source: Source) -> str:
    """Write ``name = ...``."""
    return f'{name} = {lay_out(source, len(name) + 3)}'


def write_in_full(tree: Dict[str, Any]) -> str:
    """Return a whole config, one statement per key; raise :class:`ValueError` for a key whose value has no source."""
    lines = []
    for key, value in tree.items():
        try:
            lines.append(write_statement(key, write_source(value)))
        except ValueError as error:
            raise ValueError(f'{key}: {error}') from error
    return '\n'.join(lines) + '\n'
