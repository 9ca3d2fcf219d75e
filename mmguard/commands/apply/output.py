"""Writer of configs for `mmguard apply`, which inherit from the original if possible, else repeat all settings."""

from __future__ import annotations

import keyword
import math
import os
import os.path as osp
import tempfile
from contextlib import contextmanager
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, Union

from mmguard.commands.apply.guarded import build_tree
from mmguard.compat.stack import build_base_source
from mmguard.config.classes import SCOPES
from mmguard.config.guards import has_lazy_types
from mmguard.config.read import load_config
from mmguard.config.tree import Path as ConfigPath
from mmguard.config.tree import name_types
from mmguard.errors import CannotRun
from mmguard.text import quantity, visible

_HEADER = '# Written by `mmguard apply`, mmguard {version}: {source}, {what}.\n'
_GUARDED = 'guarded against invalid labels'


def load(source: str, run_code: bool = False) -> Dict[str, Any]:
    """Return the tree of a config, which is given as a file or as ``'mmseg::pidnet/....py'``."""
    return build_tree(load_config(source, run_code=run_code))


def list_bases(source: str, out: Path) -> List[Base]:
    """Return the ``_base_`` values by which the file ``out`` can inherit from ``source``, the most portable first."""
    if '::' in source:
        return _list_shipped(source)
    parts = Path(source).resolve().as_posix().split('/')
    bases: List[Base] = []
    for package in SCOPES:
        shipped = [package, '.mim', 'configs']
        at = next((n for n in range(len(parts)) if parts[n : n + 3] == shipped), None)
        if at is not None:
            bases += _list_shipped(f'{package}::{"/".join(parts[at + 3 :])}')
    try:
        relative = osp.relpath(osp.realpath(source), osp.realpath(out.parent)).replace(os.sep, '/')
        bases.append(relative if relative.startswith('.') else f'./{relative}')
    except ValueError:  # another drive
        pass
    return [*bases, osp.realpath(source).replace(os.sep, '/')]


def _list_shipped(name: str) -> List[Base]:
    """Return two bases for a shipped config: its short name, and an expression that every mmengine can evaluate."""
    return [name, Code(build_base_source(name))]


def build_config_text(
    source: str, old: Dict[str, Any], tree: Dict[str, Any], out: Path, version: str, description: str = _GUARDED
) -> str:
    """Return the text of a config for the file ``out``, after checking that mmengine loads the text as ``tree``.

    ``old`` is the tree of the original config, and ``description`` the change that the first line names.
    """
    for base in () if has_lazy_types(tree) else list_bases(source, out):
        text = _write_inheriting(base, old, tree, out, guards=_GUARDED in description)
        if text is not None:
            return (
                _HEADER.format(version=version, source=base if isinstance(base, str) else source, what=description)
                + text
            )
    plain = name_types(tree)
    try:
        text = write_in_full(plain)
    except ValueError as error:
        raise CannotRun(f'{source} cannot be written in full: {error}') from error
    with _temporary_file(text, out) as path:
        if not _is_same(load(str(path)), plain):
            raise CannotRun(
                f'{source} cannot be written as a file that loads as the same config. Use mmguard.guard_config(cfg) '
                f'in your training script instead, one line before Runner.from_cfg(cfg)'
            )
    return _HEADER.format(version=version, source=source, what=description) + text


def _write_inheriting(base: Base, old: Dict[str, Any], tree: Dict[str, Any], out: Path, guards: bool) -> Optional[str]:
    try:
        text = write_overlay(base, remove_scopes(old), remove_scopes(tree), guards)
        with _temporary_file(text, out) as path:
            return text if _is_same(load(str(path)), tree) else None
    except Exception:  # the caller then tries the next base, or writes the config in full
        return None


@contextmanager
def _temporary_file(text: str, out: Path) -> Iterator[Path]:
    """Write a text to a temporary file next to ``out``; remove the file when the context ends."""
    handle, name = tempfile.mkstemp(prefix='mmguard_', suffix='.py', dir=out.parent)
    try:
        with os.fdopen(handle, 'w', encoding='utf-8') as file:
            file.write(text)
        yield Path(name)
    finally:
        os.unlink(name)


def _is_same(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    return bool(remove_scopes(one) == remove_scopes(other))


def remove_scopes(node: Any) -> Any:
    """Return a copy without the ``_scope_`` keys that mmengine adds to a config inherited with ``mmseg::``."""
    if isinstance(node, dict):
        return {key: remove_scopes(value) for key, value in node.items() if key != '_scope_'}
    if isinstance(node, (list, tuple)):
        return type(node)(remove_scopes(value) for value in node)
    return node


def show_changes(source: str, changed: List[str], unchanged: List[str]) -> None:
    """Print the changes, and the parts left unchanged."""
    print(f'{quantity(len(changed), "change")}:' if changed else f'{source} is guarded already: nothing to change')
    for line in changed:
        print(f'  {visible(line)}')
    if unchanged:
        print('left unchanged:')
        for line in unchanged:
            print(f'  {visible(line)}')


def describe_form(text: str) -> str:
    """Return ``'inherits: _base_ = ...'``, or why a config is written in full."""
    base = next((line for line in text.splitlines() if line.startswith('_base_ = ')), None)
    return f'inherits: {base}' if base else 'in full: the original is a pure Python config, or cannot be inherited from'


#: Names of ConfigDict's own attributes, which hide keys of the same name.
_OF_DICTS = frozenset(dir(dict)) | {'to_dict', 'merge', 'build_lazy', 'lazy'}

_COMMENTS = {
    'custom_imports': '# Registers the guards.',
    'custom_hooks': '# Reports skipped labels in the log and in label_guard.jsonl.',
    'model': '# Losses that do not crash on invalid labels; their other arguments are unchanged.',
}
_FIRST = ('custom_imports', 'custom_hooks', 'model')


def write_overlay(base: Base, old: Dict[str, Any], new: Dict[str, Any], guards: bool = True) -> str:
    """Return the text of a config that inherits from ``base`` (with the tree ``old``) and changes it to ``new``."""
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
    """Writer of changed settings, which refers to values of the base config and to variables to avoid repetition."""

    def __init__(self, names: List[Tuple[str, Any]]) -> None:
        self.named = names

    def merge(self, old: Any, new: Any, path: ConfigPath) -> Source:
        """Return source code from which mmengine gets ``new`` when it merges the code into ``old``."""
        if not isinstance(old, dict) or not isinstance(new, dict):
            return self.write_whole(old, new, path)
        if all(key in new for key in old):
            return write_dict(
                {k: self.merge(old.get(k, _ABSENT), v, (*path, k)) for k, v in new.items() if old.get(k, _ABSENT) != v}
            )
        return write_dict({'_delete_': True, **{k: self._refer(old, k, v, path) for k, v in new.items()}})

    def _refer(self, old: Dict[str, Any], key: str, value: Any, path: ConfigPath) -> Source:
        known = old.get(key, _ABSENT)
        if value in (known, old):
            return Code(write_reference((*path, key) if value == known else path))
        return self.write_whole(known, value, (*path, key))

    def write_whole(self, old: Any, new: Any, path: ConfigPath) -> Source:
        """Return the source of the whole value ``new``, with references to parts that are equal in ``old``."""
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

    def _splice(self, old: List[Any], new: List[Any], path: ConfigPath) -> Source:
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
    """Return (prefix, source) of the items ``start:end`` of a list, such as ``('*', '_base_.hooks[1:]')``."""
    if (start, end) == (0, length):
        return '*', Code(name)
    if end - start == 1:
        return '', Code(f'{name}[{start}]')
    return '*', Code(f'{name}[{start or ""}:{"" if end == length else end}]')


def _is_alike(old: Any, new: Any) -> bool:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    return all(key in new for key in old) or any(value == old for value in new.values())


def write_reference(path: ConfigPath) -> str:
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
    """Source code in brackets. Each part is a pair of a prefix, such as ``'key='`` or ``''``, and a value."""

    opening: str
    parts: List[Tuple[str, Source]]
    closing: str


#: Name of a base config, or source code that evaluates to such a name.
Base = Union[str, Code]
Source = Union[Code, Items]


def write_source(value: Any) -> Source:
    """Return the source code of plain data (containers, numbers, text); raise ``ValueError`` for other values."""
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
    """Return source such as ``dict(a=1)``, or ``{'a b': 1}`` if a key is not a name; the parts ``first`` come first."""
    if all(isinstance(key, str) and is_name(key) for key in value):
        return Items('dict(', [*first, *((f'{key}=', write_source(item)) for key, item in value.items())], ')')
    spread = [(f'**{prefix}', part) for prefix, part in first]
    return Items('{', [*spread, *((f'{key!r}: ', write_source(item)) for key, item in value.items())], '}')


def is_name(key: str) -> bool:
    """Return True if a key can be written as ``key=`` and ``.key``; a keyword such as ``lambda`` cannot."""
    return key.isidentifier() and not keyword.iskeyword(key)


def lay_out(source: Source, before: int = 0, indent: int = 0) -> str:
    """Return source code in lines; the first line begins at column ``before`` of a statement at column ``indent``."""
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
    """Return lines of at most ``WIDTH`` columns, each with as many items as fit."""
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
    """Return the source of the statement ``name = ...``."""
    return f'{name} = {lay_out(source, len(name) + 3)}'


def write_in_full(tree: Dict[str, Any]) -> str:
    """Return the text of a whole config, one statement per key; raise ``ValueError`` if a value has no source code."""
    lines = []
    for key, value in tree.items():
        try:
            lines.append(write_statement(key, write_source(value)))
        except ValueError as error:
            raise ValueError(f'{key}: {error}') from error
    return '\n'.join(lines) + '\n'
