"""Functions that change a copy of a config, and that merge two changed copies."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, Iterable, List, Mapping, Sequence, Tuple

from mmguard.config.read import ReadConfig
from mmguard.config.tree import copy_tree, split_path

#: Changes of a config: (path, new value).
Changes = Tuple[Tuple[str, Any], ...]
#: Value of a change that removes the key.
REMOVED = object()


def change_config(config: ReadConfig, changes: Iterable[Tuple[str, Any]]) -> ReadConfig:
    """Return a copy of a config with values replaced, added or removed. Dicts missing along a path are created.

    Raises:
        LookupError, TypeError: A list element on a path, or a key to remove, does not exist.
    """
    return ReadConfig(change_data(config.written, changes), config.file, list(config.notes))


def change_data(data: Mapping[str, Any], changes: Iterable[Tuple[str, Any]]) -> Any:
    """Return a copy of the plain dicts and lists of a config, changed in the same way as by :func:`change_config`."""
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


#: Placeholder for a value that one of the copies lacks.
_MISSING = object()


class Conflict(ValueError):
    """Error if two copies change one value differently; its message is the path of the value."""


def merge(base: Any, one: Any, other: Any, path: str = '') -> Any:
    """Merge two changed copies of ``base``, a config or a part of one.

    Raises:
        Conflict: The copies change one value differently.

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
    """Return the elements of ``base`` as in ``copy``, and those that ``copy`` inserts before each and at the end."""
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
