"""The guarded config as a file: inheriting from the original where that gives the same, else in full."""

from __future__ import annotations

import os
import os.path as osp
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Dict, Iterator, List, Optional, Union

from mmguard.compat.stack import base_source
from mmguard.config.classes import SCOPES
from mmguard.config.load import load_config
from mmguard.config.tree import by_name
from mmguard.errors import CannotRun
from mmguard.tools.apply.guarded import is_lazy, tree_of
from mmguard.tools.apply.overlay import overlay_text
from mmguard.tools.apply.source_text import Code, full_text

#: The name of a config, or source that evaluates to it.
Base = Union[str, Code]

_HEADER = '# Written by `mmguard apply`, mmguard {version}: {source}, {what}.\n'
_GUARDED = 'guarded against invalid labels'


def load(source: str, run_code: bool = False) -> Dict[str, Any]:
    """The tree of a config: a file, or ``'mmseg::pidnet/....py'``.

    Raises:
        CannotRun: It cannot be loaded, and why.
    """
    return tree_of(load_config(source, run_code=run_code))


def bases_for(source: str, out: Path) -> List[Base]:
    """What ``_base_`` of ``out`` may call ``source``, the most portable first."""
    if '::' in source:
        return _shipped(source)
    parts = Path(source).resolve().as_posix().split('/')
    bases: List[Base] = []
    for package in SCOPES:
        shipped = [package, '.mim', 'configs']
        at = next((n for n in range(len(parts)) if parts[n : n + 3] == shipped), None)
        if at is not None:
            bases += _shipped(f'{package}::{"/".join(parts[at + 3 :])}')
    try:
        relative = osp.relpath(osp.realpath(source), osp.realpath(out.parent)).replace(os.sep, '/')
        bases.append(relative if relative.startswith('.') else f'./{relative}')
    except ValueError:  # another drive
        pass
    return [*bases, osp.realpath(source).replace(os.sep, '/')]


def _shipped(name: str) -> List[Base]:
    """The short name where this mmengine can resolve it, then the one that every mmengine can."""
    return [name, Code(base_source(name))]


def config_text(
    source: str, old: Dict[str, Any], tree: Dict[str, Any], out: Path, version: str, what: str = _GUARDED
) -> str:
    """The text of a guarded config, read back and found to say what it should.

    Args:
        source (str): The original: a file, or ``'mmseg::...'``.
        old (dict): What that loads.
        tree (dict): The guarded config.
        out (Path): Where it will stand; relative bases count from there.
        version (str): Of mmguard, for the first line.
        what (str): What was done to it, for the first line.

    Raises:
        CannotRun: A config that no text gives back.
    """
    for base in () if is_lazy(tree) else bases_for(source, out):
        text = _inheriting(base, old, tree, out, guards=_GUARDED in what)
        if text is not None:
            return _HEADER.format(version=version, source=base if isinstance(base, str) else source, what=what) + text
    plain = by_name(tree)
    try:
        text = full_text(plain)
    except ValueError as error:
        raise CannotRun(f'{source} cannot be written in full: {error}') from error
    with _written(text, out) as path:
        if not _same(load(str(path)), plain):
            raise CannotRun(
                f'{source}: its text cannot be written so that it loads back the same. Use mmguard.guard_config(cfg) '
                f'in your training script instead, one line before Runner.from_cfg(cfg)'
            )
    return _HEADER.format(version=version, source=source, what=what) + text


def _inheriting(base: Base, old: Dict[str, Any], tree: Dict[str, Any], out: Path, guards: bool) -> Optional[str]:
    try:
        text = overlay_text(base, without_scopes(old), without_scopes(tree), guards)
        with _written(text, out) as path:
            return text if _same(load(str(path)), tree) else None
    except Exception:  # whatever stops this base, the next way is tried, and the last one tells
        return None


@contextmanager
def _written(text: str, out: Path) -> Iterator[Path]:
    """A file beside ``out`` for as long as it takes to read it."""
    handle, name = tempfile.mkstemp(prefix='mmguard_', suffix='.py', dir=out.parent)
    try:
        with os.fdopen(handle, 'w', encoding='utf-8') as file:
            file.write(text)
        yield Path(name)
    finally:
        os.unlink(name)


def _same(one: Dict[str, Any], other: Dict[str, Any]) -> bool:
    return bool(without_scopes(one) == without_scopes(other))


def without_scopes(node: Any) -> Any:
    """mmengine notes the scope of an inherited ``mmseg::`` config in it."""
    if isinstance(node, dict):
        return {key: without_scopes(value) for key, value in node.items() if key != '_scope_'}
    if isinstance(node, (list, tuple)):
        return type(node)(without_scopes(value) for value in node)
    return node
