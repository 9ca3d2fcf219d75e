"""Changes a config that was read: a copy with other values at some places."""

from __future__ import annotations

import re
from typing import Any, Iterable, List, Mapping, Tuple, Union

from mmguard.config.read import ReadConfig

#: Places of a config and what they become: (path, value).
Changes = Tuple[Tuple[str, Any], ...]
#: In place of a value: the key goes.
REMOVED = object()


def changed(config: ReadConfig, changes: Iterable[Tuple[str, Any]]) -> ReadConfig:
    """A copy of a config with what stands at these places replaced, added or removed.

    Args:
        config (ReadConfig): Never written to.
        changes: (path, value), the path as in findings, ``model.decode_head.loss_decode[0].class_weight``. What stands
            around a place is made where it is missing.

    Raises:
        LookupError, TypeError: No such place.
    """
    return ReadConfig(changed_data(config.written, changes), config.file, list(config.notes))


def changed_data(data: Mapping[str, Any], changes: Iterable[Tuple[str, Any]]) -> Any:
    """The same of the plain dicts and lists of a config."""
    copy = _copied(data)
    for path, value in changes:
        *way, last = steps(path)
        place: Any = copy
        for step in way:
            place = place.setdefault(step, {}) if isinstance(place, dict) else place[step]
        if value is not REMOVED:
            place[last] = _copied(value)
        else:
            del place[last]
    return copy


def steps(path: str) -> List[Union[str, int]]:
    """The keys and positions of a path.

    Example:
        >>> steps('model.decode_head[1].num_classes')
        ['model', 'decode_head', 1, 'num_classes']
    """
    return [int(step) if step.isdigit() else step for step in re.findall(r'[^.\[\]]+', path)]


def _copied(value: Any) -> Any:
    # Not deepcopy: parts of a config that are one object are not meant to change together.
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value
    return value
