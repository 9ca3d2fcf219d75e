"""Two changed copies of one config as one copy, in which what either changed is changed."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Any, List, Sequence, Tuple

#: In place of what one of them does not have.
_MISSING = object()


class Conflict(ValueError):
    """Both changed the same place, each in another way; its text is the path."""


def merged(base: Any, one: Any, other: Any, path: str = '') -> Any:
    """Merges what two edits made of a config, or of a part of it.

    Args:
        base: As it was.
        one, other: As each made it.
        path (str): Where it stands.

    Raises:
        Conflict: They contradict each other.

    Example:
        >>> merged([1, 2, 3], [0, 1, 2, 3], [1, 2, 4])
        [0, 1, 2, 4]
    """
    if _is_same(one, other) or _is_same(other, base):
        return one
    if _is_same(one, base):
        return other
    known = {} if base is _MISSING else base
    if all(isinstance(part, dict) for part in (known, one, other)):
        both = {
            key: merged(
                known.get(key, _MISSING), one.get(key, _MISSING), other.get(key, _MISSING), f'{path}.{key}'.lstrip('.')
            )
            for key in {**known, **one, **other}
        }
        return {key: value for key, value in both.items() if value is not _MISSING}
    if all(isinstance(part, (list, tuple)) for part in (base, one, other)):
        return type(base)(_merged_lists(base, one, other, path))
    raise Conflict(path)


def _merged_lists(base: Sequence[Any], one: Sequence[Any], other: Sequence[Any], path: str) -> List[Any]:
    kept, before = _aligned(base, one)
    also_kept, also_before = _aligned(base, other)
    found = []
    for place in range(len(base) + 1):
        found += before[place]
        found += also_before[place] if also_before[place] != before[place] else []
        if place < len(base):
            found.append(merged(base[place], kept[place], also_kept[place], f'{path}[{place}]'))
    return [value for value in found if value is not _MISSING]


def _aligned(base: Sequence[Any], copy: Sequence[Any]) -> Tuple[List[Any], List[List[Any]]]:
    """What became of each element, and what was put before each, and behind the last."""
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
