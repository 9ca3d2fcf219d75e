"""Traversal of configs as plain dicts and lists, and edits of copies."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Sequence, Tuple, Union

from mmguard.config.classes import build_full_name
from mmguard.config.read import ReadConfig

#: Changes of a config: (path, new value).
Changes = Tuple[Tuple[str, Any], ...]
#: Value in an edit that means: remove the key.
REMOVED = object()


def change_config(config: ReadConfig, changes: Iterable[Tuple[str, Any]]) -> ReadConfig:
    """Return a copy of a config with values replaced, added or removed.

    Args:
        config (ReadConfig): The config, which is not modified.
        changes: (path, value), the path as in findings, ``model.decode_head.loss_decode[0].class_weight``. Missing
            dicts on the way are created.

    Raises:
        LookupError, TypeError: The config has no such place.
    """
    return ReadConfig(change_data(config.written, changes), config.file, list(config.notes))


def change_data(data: Mapping[str, Any], changes: Iterable[Tuple[str, Any]]) -> Any:
    """Return a copy of the plain dicts and lists of a config with changes applied, see :func:`change_config`."""
    copy = copy_tree(data)
    for path, value in changes:
        *way, last = split_path(path)
        place: Any = copy
        for step in way:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        if value is not REMOVED:
            place[last] = copy_tree(value)
        else:
            del place[last]
    return copy


def get_value(tree: Any, path: Iterable[Union[str, int]]) -> Any:
    """Return the value at a path of a tree; ``None`` if it has no such place."""
    try:
        for key in path:
            tree = tree[key]
    except (LookupError, TypeError):
        return None
    return tree


def split_path(path: str) -> List[Union[str, int]]:
    """Split a path into its keys and positions.

    Example:
        >>> split_path('model.decode_head[1].num_classes')
        ['model', 'decode_head', 1, 'num_classes']
    """
    return [int(step) if step.isdigit() else step for step in re.findall(r'[^.\[\]]+', path)]


def copy_tree(value: Any) -> Any:
    """Return a copy of dicts, lists and tuples, and of nothing else."""
    # Not deepcopy: two places that share one object would still share it in the copy, and change together.
    if isinstance(value, dict):
        return {key: copy_tree(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(copy_tree, value)) if type(value) in (list, tuple) else value
    return value


#: Placeholder for a value that one side lacks.
_MISSING = object()


class Conflict(ValueError):
    """Contradictory changes to one place; the message is its path."""


def merge(base: Any, one: Any, other: Any, path: str = '') -> Any:
    """Merge the results of two edits of a config, or of a part of it.

    Raises:
        Conflict: The edits contradict each other.

    Example:
        >>> merge([1, 2, 3], [0, 1, 2, 3], [1, 2, 4])
        [0, 1, 2, 4]
    """
    if _is_same(one, other) or _is_same(other, base):
        return one
    if _is_same(one, base):
        return other
    known = {} if base is _MISSING else base
    if all(isinstance(part, dict) for part in (known, one, other)):
        both = {
            key: merge(
                known.get(key, _MISSING), one.get(key, _MISSING), other.get(key, _MISSING), f'{path}.{key}'.lstrip('.')
            )
            for key in {**known, **one, **other}
        }
        return {key: value for key, value in both.items() if value is not _MISSING}
    if all(isinstance(part, (list, tuple)) for part in (base, one, other)):
        return type(base)(_merge_lists(base, one, other, path))
    raise Conflict(path)


def _merge_lists(base: Sequence[Any], one: Sequence[Any], other: Sequence[Any], path: str) -> List[Any]:
    kept, before = _align(base, one)
    also_kept, also_before = _align(base, other)
    found = []
    for place in range(len(base) + 1):
        found += before[place]
        found += also_before[place] if also_before[place] != before[place] else []
        if place < len(base):
            found.append(merge(base[place], kept[place], also_kept[place], f'{path}[{place}]'))
    return [value for value in found if value is not _MISSING]


def _align(base: Sequence[Any], copy: Sequence[Any]) -> Tuple[List[Any], List[List[Any]]]:
    """Return the new value of each element, and the elements inserted before each and after the last."""
    kept: List[Any] = [_MISSING] * len(base)
    before: List[List[Any]] = [[] for _ in range(len(base) + 1)]
    alike = SequenceMatcher(None, list(map(repr, base)), list(map(repr, copy)), autojunk=False)
    for _, start, end, first, last in alike.get_opcodes():
        both = min(end - start, last - first)
        kept[start : start + both] = copy[first : first + both]
        before[start + both] += copy[first + both : last]
    return kept, before


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (one is not _MISSING and other is not _MISSING and one == other)


Path = Tuple[Union[str, int], ...]


def walk(node: Any, path: Path = ()) -> Iterator[Tuple[Path, Dict[str, Any]]]:
    """Yield all dicts of a tree with their paths, outer dicts first."""
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


def get_last_key(path: Path) -> str:
    """Return the last name of a path; for a list element, the name of the list."""
    return next((key for key in reversed(path) if isinstance(key, str)), '')


def is_type_name(type_: Any) -> bool:
    """Return True if a type is given by name; in new-style configs it is a class."""
    return isinstance(type_, str)


def map_leaves(node: Any, change: Callable[[Any], Any]) -> Any:
    """Return a copy of a tree with a function applied to everything but dicts, lists and tuples."""
    if isinstance(node, dict):
        return {key: map_leaves(value, change) for key, value in node.items()}
    if isinstance(node, (list, tuple)):
        values = [map_leaves(value, change) for value in node]
        return values if isinstance(node, list) else tuple(values)
    return change(node)


def name_types(tree: Any) -> Any:
    """Return a copy of a tree with classes replaced by their full names, which mmengine's registries understand."""
    return map_leaves(tree, lambda leaf: build_full_name(leaf) or leaf)


def find_scope(tree: Dict[str, Any], path: Path) -> str:
    """Return the scope in which a part is built: the innermost ``_scope_`` around it.

    The prefix of a type applies only to that type: ``mmdet.MaskFormerHead`` in a config of mmseg builds its losses in
    mmseg's scope. A path may go on with a part that the tree leaves to a default.
    """
    scope = str(tree.get('default_scope') or '')
    node: Any = tree
    for key in path:
        if isinstance(node, dict) and key not in node:
            break
        node = node[key]
        if isinstance(node, dict):
            scope = str(node.get('_scope_') or scope)
    return scope
