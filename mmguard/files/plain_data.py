"""YAML and JSON as plain data: nothing is executed, and size and depth are checked first."""

from __future__ import annotations

import io
import json
from itertools import chain
from typing import Any, Dict, Iterable, List, Optional, Tuple

#: Maximum number of values in a config or a data.yaml.
LARGEST = 1_000_000
#: Maximum depth of lists and dicts; code that walks them recurses once per level.
DEEPEST = 100
_MOST_DIGITS = 4000
_TOO_DEEP_FAULT = f'nested more than {DEEPEST} levels deep'


class NotPlain(Exception):
    """A data file with disallowed or excessive content."""


def parse_data(text: str, ending: str) -> Any:
    """Parse text: JSON if the ending is ``'.json'``, else YAML. Nothing is executed.

    Raises:
        NotPlain: The text holds more than plain data, expands to too many values by aliases, or is nested too
            deeply.
        ValueError: The text is damaged; the parser's error is the cause.

    Example:
        >>> parse_data('a: [1, 2]', '.yaml')
        {'a': [1, 2]}
    """
    if ending == '.json':
        try:
            data = json.loads(text)
            too_deep = is_nested(data, DEEPEST)
        except RecursionError:
            too_deep = True
        if too_deep:
            raise NotPlain(f'JSON that is {_TOO_DEEP_FAULT}')
        return data
    import yaml

    # libyaml is ten times as fast, but overflows the stack if lists are nested deeply enough.
    loader = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
    try:
        _check_events(yaml.parse(text, Loader=loader))
        return yaml.load(text, Loader=loader)
    except yaml.constructor.ConstructorError as error:
        raise NotPlain('YAML with tags of another program, which only that program can read') from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def is_nested(value: Any, levels: int) -> bool:
    """Return True if lists and dicts without shared parts are nested deeper than a limit.

    Example:
        >>> is_nested([[1]], 2), is_nested([[[1]]], 2)
        (False, True)
    """
    level = [value]
    for _ in range(levels):
        holders = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, _HOLDERS)]
        level = list(chain.from_iterable(holders))
    return any(isinstance(one, _HOLDERS) for one in level)


_HOLDERS = (dict, list, tuple, set, frozenset)


def _check_events(events: Iterable[Any]) -> None:
    """Refuse YAML that expands to too many values or is nested too deeply, before merge keys copy aliases."""
    import yaml

    known: Dict[Optional[str], Tuple[int, int]] = {}
    around: List[Tuple[Optional[str], int, int]] = [(None, 0, 0)]  # name, values and levels of each open part
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, 1, 0))
            if event.anchor is not None:
                known[event.anchor] = LARGEST + 1, 1  # in case it contains itself
            if len(around) > DEEPEST:
                raise NotPlain(f'YAML that is {_TOO_DEEP_FAULT}')
            continue
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, size, levels = around.pop()
            levels += 1
        elif isinstance(event, yaml.AliasEvent):
            anchor, (size, levels) = None, known.get(event.anchor, (1, 0))
        elif isinstance(event, yaml.ScalarEvent):
            anchor, size, levels = event.anchor, 1, 0
            # Parsing a number takes time quadratic in its digits.
            if len(event.value) > _MOST_DIGITS and (
                event.tag or (event.implicit[0] and event.value[0] in '+-0123456789')
            ):
                raise NotPlain(f'YAML with a number of {len(event.value):,} characters')
        else:
            continue
        if anchor is not None:
            known[anchor] = size, levels
        name, before, deepest = around.pop()
        around.append((name, before + size, max(deepest, levels)))
        if before + size > LARGEST:
            raise NotPlain(f'YAML whose aliases (*name) spread it to more than {LARGEST:,} values')
        if len(around) + levels > DEEPEST:
            raise NotPlain(f'YAML that is {_TOO_DEEP_FAULT}')


#: Maximum number of bytes in a file of class weights.
LARGEST_WEIGHTS = 1 << 22


def parse_weights(content: bytes, ending: str) -> Any:
    """Parse a file of class weights by its ending, without executing code; the limit is :data:`LARGEST_WEIGHTS` bytes.

    Raises:
        ValueError: The file is damaged or too large, or a .npy holds anything but a list of numbers.
        Exception: Anything else that a damaged file raises.
    """
    if len(content) > LARGEST_WEIGHTS:
        raise ValueError(f'it is larger than {LARGEST_WEIGHTS >> 20} MiB')
    if ending == '.npy':
        import numpy as np

        array = np.load(io.BytesIO(content), allow_pickle=False)
        if getattr(array, 'ndim', 0) != 1 or not 0 < len(array) <= len(content):  # numbers may have 0 bytes
            raise ValueError(f'it does not hold a list, but an array of shape {getattr(array, "shape", "unknown")}')
        return array.tolist()
    try:
        return parse_data(content.decode(), '.json' if ending == '.json' else '.yaml')
    except NotPlain as error:
        raise ValueError(f'it is {error}') from error
