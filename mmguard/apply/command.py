"""What ``mmguard apply`` does, and says."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import List

from mmguard.errors import CannotRun
from mmguard.failures import import_scope, words_of
from mmguard.files import write_whole
from mmguard.version import __version__
from mmguard.words import counted


def apply(source: str, out: Path, force: bool = False, quiet: bool = False) -> int:
    """Writes the guarded config.

    Args:
        source (str): A config file, or ``'mmseg::...'``.
        out (Path): The file to write. Its folder is made.
        force (bool): Overwrite ``out`` where it says something else.
        quiet (bool): Show no diff.

    Returns:
        int: 0.

    Raises:
        CannotRun, OSError: It cannot be done.
    """
    from mmguard.apply.difference import show, unified
    from mmguard.apply.guarded import guard_tree
    from mmguard.apply.written import by_name, config_text, load

    warnings.filterwarnings('ignore', message='pkg_resources')  # mmengine's, at every import
    _check_places(source, out)
    try:
        tree = load(source)
    except Exception as error:  # a config is a program: it may raise anything
        raise CannotRun(f'{source} cannot be loaded: {words_of(error)}') from error
    if not isinstance(tree.get('model'), dict):
        raise CannotRun(f'{source} has no `model`: give the config that you train with, not a part of it')
    import_scope(tree)
    guarded = guard_tree(tree)
    out.parent.mkdir(parents=True, exist_ok=True)
    text = config_text(source, tree, guarded.tree, out, __version__)
    before = out.read_text(encoding='utf-8') if out.exists() else None
    if before not in (None, text) and not force:
        raise CannotRun(f'{out} exists and says something else: give another -o, or --force to overwrite it')
    if not quiet and guarded.changed:
        show(unified(by_name(tree), by_name(guarded.tree), source, str(out)), sys.stdout)
        print()
    _tell(source, guarded.changed, guarded.left)
    if before == text:
        print(f'unchanged: {out}')
        return 0
    write_whole(out, text.encode('utf-8'))
    print(f'written: {out} ({_how(text)})')
    return 0


def _check_places(source: str, out: Path) -> None:
    if out.suffix != '.py':
        raise CannotRun(f'{out}: a config that inherits is written in Python, so its name must end with .py')
    if '::' in source:
        return
    if not Path(source).is_file():
        raise CannotRun(
            f'{source}: no such file. A config that ships with a framework is given as mmseg::pidnet/NAME.py'
        )
    if out.exists() and out.samefile(source):
        raise CannotRun(f'{out} is CONFIG itself, which is never overwritten: give another -o')


def _tell(source: str, changed: List[str], left: List[str]) -> None:
    print(f'{counted(len(changed), "change")}:' if changed else f'{source} is guarded already, nothing to change')
    for line in changed:
        print(f'  {line}')
    if left:
        print('left as it is:')
        for line in left:
            print(f'  {line}')


def _how(text: str) -> str:
    base = next((line for line in text.splitlines() if line.startswith('_base_ = ')), None)
    return f'inherits: {base}' if base else 'in full: a new-style config, or one that cannot be inherited from'
