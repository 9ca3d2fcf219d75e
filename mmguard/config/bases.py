"""The files that a config is made of: all are looked at before a line of one is run."""

from __future__ import annotations

import ast
import os
from typing import Any, Dict, Iterator, List, Sequence

from mmguard.compat.stack import OPENMMLAB, SHIPPED, STACKS, base_source, config_file
from mmguard.config.recognized import NotAConfig, check_is_config, read_text
from mmguard.files.plain_data import NotPlain, parse_data

#: More files are no chain of bases.
_MOST = 1000


def check_bases(file: str) -> List[str]:
    """Looks at a config file and its bases, as far as they are named without running it.

    Args:
        file (str): The file. What does not exist, or cannot be parsed, is left to who reads it.

    Returns:
        list[str]: The file and its bases.

    Raises:
        NotAConfig: One of them is none, or leads back to itself.
    """
    check_is_config(file)
    seen: Dict[str, bool] = {}
    _walk(os.path.abspath(file), [], seen)
    return list(seen)


def _walk(file: str, way: List[str], seen: Dict[str, bool]) -> None:
    if file in way:
        chain = [os.path.basename(one) for one in (*way[way.index(file) :], file)]
        raise NotAConfig(f'{file}: its _base_ leads back to it: {" -> ".join(chain)}. Nothing of it was run')
    if file in seen or len(seen) > _MOST or len(way) > 100:
        return
    seen[file] = True
    if way:
        check_is_config(file, is_base=True)
    for base in bases_of(file):
        _walk(base, [*way, file], seen)


def bases_of(file: str) -> List[str]:
    """The files that a config names as its bases, those that only running it would tell left out."""
    ending = os.path.splitext(file)[1].lower()
    text = read_text(file)
    if text is None:
        return []
    folder = os.path.dirname(file)
    try:
        if ending == '.py':
            body = ast.parse(text).body
            named = [*_of_text_style(body), *_of_new_style(body, folder)]
        else:
            data = parse_data(text, ending)
            said = data.get('_base_') if isinstance(data, dict) else None
            named = [said] if isinstance(said, str) else said if isinstance(said, list) else []
    except (SyntaxError, ValueError, NotPlain, RecursionError, MemoryError):
        return []
    paths = [_path_of(name, folder) for name in named if isinstance(name, str)]
    return [os.path.abspath(path) for path in paths if '\0' not in path and os.path.isfile(path)]


def _path_of(name: str, folder: str) -> str:
    try:
        return config_file(name) if '::' in name else os.path.join(folder, name)
    except (ModuleNotFoundError, FileNotFoundError):
        return ''


def _of_text_style(body: Sequence[ast.stmt]) -> Iterator[Any]:
    for node in body:
        if isinstance(node, ast.Assign) and any(_is_name(target, '_base_') for target in node.targets):
            for one in node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]:
                if isinstance(one, ast.Constant):
                    yield one.value
                elif isinstance(one, ast.BinOp):
                    yield _shipped(one)


def _shipped(node: ast.BinOp) -> str:
    """The config that ``base_source`` writes as such an expression, ``'mmseg::...'``; empty: it is something else."""
    path = node.right.value if isinstance(node.right, ast.Constant) and isinstance(node.right.value, str) else ''
    names = [f'{package}::{path[len(SHIPPED) :]}' for package in STACKS[OPENMMLAB] if path.startswith(SHIPPED)]
    said = ast.dump(node)
    return next((name for name in names if ast.dump(ast.parse(base_source(name), mode='eval').body) == said), '')


def _of_new_style(body: Sequence[ast.stmt], folder: str) -> Iterator[str]:
    """``with read_base(): from .._base_.model import *``, as mmengine finds its file."""
    for node in body:
        if not isinstance(node, ast.With) or 'read_base' not in ast.dump(node.items[0].context_expr):
            continue
        for inner in node.body:
            if isinstance(inner, ast.ImportFrom) and inner.module and inner.level:
                yield os.path.join(folder, *['..'] * (inner.level - 1), *inner.module.split('.')) + '.py'


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
