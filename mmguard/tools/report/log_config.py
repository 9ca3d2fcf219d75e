"""What the config beside a log says about labels. It is read, never run: a log may come from anywhere."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, Dict, List

from mmguard.config.parts import datasets
from mmguard.config.read import ReadConfig


def read_config(path: Path) -> Dict[str, Any]:
    """The literals of a config as mmengine writes it (``name = dict(...)``); what is no literal is left out.

    Raises:
        OSError: It cannot be read.
        ValueError: It is no Python.
    """
    try:
        tree = ast.parse(path.read_text(encoding='utf-8'))
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f'{path}: no config: {error}') from error
    config: Dict[str, Any] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            config[statement.targets[0].id] = _value(statement.value)
    return config


def _value(node: ast.AST) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == 'dict':
        return {word.arg: _value(word.value) for word in node.keywords if word.arg}
    if isinstance(node, ast.Dict):
        return {
            _value(k): _value(v) for k, v in zip(node.keys, node.values) if isinstance(k, (ast.Constant, ast.UnaryOp))
        }
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(element) for element in node.elts]
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None


def data_roots(config: Dict[str, Any], mode: str) -> List[str]:
    """Where the files of a mode are."""
    read = ReadConfig(config)
    found = [
        part.config.get('data_root') for part in datasets(read) + datasets(read, wrappers=True) if part.split == mode
    ]
    return list(dict.fromkeys(root for root in found if isinstance(root, str)))
