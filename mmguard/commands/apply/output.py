"""The guarded config as a file: inheriting from the original if that gives the same result, else in full."""

from __future__ import annotations

import os
import os.path as osp
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Union

from mmguard.commands.apply.guarded import build_tree
from mmguard.commands.apply.overlay import Code, write_in_full, write_overlay
from mmguard.compat.stack import build_base_source
from mmguard.config.classes import SCOPES
from mmguard.config.guards import has_lazy_types
from mmguard.config.read import load_config
from mmguard.config.tree import name_types
from mmguard.errors import CannotRun
from mmguard.text import quantity, visible

#: The name of a config, or source that evaluates to it.
Base = Union[str, Code]

_HEADER = '# Written by `mmguard apply`, mmguard {version}: {source}, {what}.\n'
_GUARDED = 'guarded against invalid labels'


def load(source: str, run_code: bool = False) -> Dict[str, Any]:
    """Return the tree of a config: a file, or ``'mmseg::pidnet/....py'``."""
    return build_tree(load_config(source, run_code=run_code))


def list_bases(source: str, out: Path) -> List[Base]:
    """Return possible values of ``_base_`` in ``out`` for ``source``, the most portable first."""
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
    """Return the short name of a shipped config, then an expression for it that every mmengine can evaluate."""
    return [name, Code(build_base_source(name))]


def build_config_text(
    source: str, old: Dict[str, Any], tree: Dict[str, Any], out: Path, version: str, description: str = _GUARDED
) -> str:
    """Return the text of a config for ``out``, after checking that it loads as ``tree``.

    ``old`` is the loaded original; ``description`` describes the change, for the first line.
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
                f'{source}: its text cannot be written so that it loads back the same. Use mmguard.guard_config(cfg) '
                f'in your training script instead, one line before Runner.from_cfg(cfg)'
            )
    return _HEADER.format(version=version, source=source, what=description) + text


def _write_inheriting(base: Base, old: Dict[str, Any], tree: Dict[str, Any], out: Path, guards: bool) -> Optional[str]:
    try:
        text = write_overlay(base, remove_scopes(old), remove_scopes(tree), guards)
        with _temporary_file(text, out) as path:
            return text if _is_same(load(str(path)), tree) else None
    except Exception:  # if this base fails for any reason, try the next way; the last one reports
        return None


@contextmanager
def _temporary_file(text: str, out: Path) -> Iterator[Path]:
    """Write a text to a temporary file next to ``out``, which is removed at the end."""
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
        print('left as it is:')
        for line in unchanged:
            print(f'  {visible(line)}')


def describe_form(text: str) -> str:
    """Describe the form in which a config is written."""
    base = next((line for line in text.splitlines() if line.startswith('_base_ = ')), None)
    return f'inherits: {base}' if base else 'in full: a new-style config, or one that cannot be inherited from'
