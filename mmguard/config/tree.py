"""Walks over a config as plain dicts and lists, which may hold classes, by paths that can be written to."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Tuple, Union

from mmguard.config.classes import MISSING, class_of, default_of, full_name

Path = Tuple[Union[str, int], ...]


def walk(node: Any, path: Path = ()) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """Yield all dicts of a tree with their paths, outer ones first."""
    if isinstance(node, dict):
        yield path, node
        for key, value in list(node.items()):
            yield from walk(value, (*path, key))
    elif isinstance(node, (list, tuple)):
        for number, value in enumerate(node):
            yield from walk(value, (*path, number))


def join_path(path: Path) -> str:
    """Join a path: ``('model', 'decode_head', 'loss_decode', 0)`` -> ``'model.decode_head.loss_decode[0]'``.

    Example:
        >>> join_path(('model', 'heads', 0, 'loss_cls'))
        'model.heads[0].loss_cls'
    """
    return ''.join(f'[{key}]' if isinstance(key, int) else f'.{key}' for key in path).lstrip('.')


def key_of(path: Path) -> str:
    """Return the last name of a path; for an element of a list, the name of the list."""
    return next((key for key in reversed(path) if isinstance(key, str)), '')


def is_text(type_: Any) -> bool:
    """Return True if a type is given by name. In new-style configs it is a class."""
    return isinstance(type_, str)


def map_leaves(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a tree in which all but dicts, lists and tuples is changed."""
    if isinstance(node, dict):
        return {key: map_leaves(value, change) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        values = [map_leaves(value, change) for value in node]
        return values if isinstance(node, list) else tuple(values)
    return change(node)


def name_classes(tree: Any) -> Any:
    """Return a tree whose classes are named in full, which mmengine's registries understand."""
    return map_leaves(tree, lambda leaf: full_name(leaf) or leaf)


def scope_at(tree: Dict[str, Any], path: Path) -> str:
    """Return the scope in which a part is built: ``_scope_`` of the nearest dict around it that has one.

    The prefix of a type applies only to that type: ``mmdet.RetinaHead`` in a config of mmrotate builds its losses
    there.
    """
    scope = str(tree.get('default_scope') or '')
    node: Any = tree
    for key in path:
        node = node[key]
        if isinstance(node, dict):
            scope = str(node.get('_scope_') or scope)
    return scope


def argument(node: Dict[str, Any], name: str, registry: str, scope: str) -> Any:
    """Return an argument of what a dict builds: as written, else the default of its class; ``None`` without one."""
    if name in node:
        return node[name]
    default = default_of(class_of(node.get('type'), registry, scope), name)
    return None if default is MISSING else default
