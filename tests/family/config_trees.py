"""Configs as trees."""

from __future__ import annotations

from typing import Any, Iterator, Tuple


def walk(node: Any, path: str) -> Iterator[Tuple[str, Any]]:
    """Yield each node with its path, as ``model.loss_decode[0]``."""
    yield path.lstrip('.'), node
    if isinstance(node, dict):
        for key, value in node.items():
            yield from walk(value, f'{path}.{key}')
    elif isinstance(node, (list, tuple)):
        for number, value in enumerate(node):
            yield from walk(value, f'{path}[{number}]')


def type_of(node: Any) -> str:
    """Return the type without its scope; empty of what has none."""
    return str(node.get('type', '')).rpartition('.')[2] if isinstance(node, dict) else ''
