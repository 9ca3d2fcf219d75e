"""Parsing of YAML and JSON to plain data and dataclasses, without executing code, with limits on size and depth."""

from __future__ import annotations

import io
import json
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache, partial
from itertools import chain
from typing import (
    Any,
    Callable,
    Dict,
    Iterable,
    List,
    NewType,
    Optional,
    Tuple,
    Type,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

#: Maximum number of values in a config or a data.yaml.
LARGEST = 1_000_000
#: Maximum nesting depth of lists and dicts, because code that walks them recurses once per level.
DEEPEST = 100
_MOST_DIGITS = 4000
_TOO_DEEP_FAULT = f'nested more than {DEEPEST} levels deep'


class NotPlain(Exception):
    """Error for YAML or JSON that is not plain data, is too large, or is nested too deeply."""


def parse_data(text: str, ending: str) -> Any:
    """Parse text: JSON if the ending is ``'.json'``, else YAML. Nothing is executed.

    Raises:
        NotPlain: The text is not plain data, is nested too deeply, or has aliases that expand to too many values.
        ValueError: The text is not valid JSON or YAML.

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
        raise NotPlain('YAML with custom tags, which only the program that defines them can read') from error
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def is_nested(value: Any, levels: int) -> bool:
    """Return True if lists and dicts are nested more than ``levels`` deep. A value that occurs twice is walked twice.

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
    """Raise :class:`NotPlain` if YAML is nested too deeply or its aliases expand to too many values."""
    import yaml

    known: Dict[Optional[str], Tuple[int, int]] = {}
    around: List[Tuple[Optional[str], int, int]] = [(None, 0, 0)]  # anchor, values and levels of each open part
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
            raise NotPlain(f'YAML whose aliases (*name) expand to more than {LARGEST:,} values')
        if len(around) + levels > DEEPEST:
            raise NotPlain(f'YAML that is {_TOO_DEEP_FAULT}')


#: Maximum number of bytes in a file of class weights.
LARGEST_WEIGHTS = 1 << 22


def parse_weights(content: bytes, ending: str) -> Any:
    """Parse the content of a file of class weights (.npy, .json, else YAML) without executing code.

    Raises:
        ValueError: The file is damaged or too large, or a .npy file does not contain a list of numbers.
        Exception: The file is damaged; NumPy may raise anything.
    """
    if len(content) > LARGEST_WEIGHTS:
        raise ValueError(f'it is larger than {LARGEST_WEIGHTS >> 20} MiB')
    if ending == '.npy':
        import numpy as np

        array = np.load(io.BytesIO(content), allow_pickle=False)
        if getattr(array, 'ndim', 0) != 1 or not 0 < len(array) <= len(content):  # numbers may have 0 bytes
            raise ValueError(f'it holds an array of shape {getattr(array, "shape", "unknown")}, not a list')
        return array.tolist()
    try:
        return parse_data(content.decode(), '.json' if ending == '.json' else '.yaml')
    except NotPlain as error:
        raise ValueError(f'it is {error}') from error


T = TypeVar('T')
Decode = Callable[[Any], Any]

#: Rank of a process, or number of processes; values above _RANKS are refused as implausible.
Rank = NewType('Rank', int)
_RANKS = 1 << 20
#: Largest integer that every JSON parser represents exactly.
_MOST = 1 << 53


class NotJson(ValueError):
    """Error for a text that is not JSON, e.g. because it is truncated."""


def parse_object(text: bytes) -> Dict[str, Any]:
    """Parse a text into a JSON object.

    Raises:
        NotJson: The text is not JSON.
        ValueError: The JSON is not an object, or is nested too deeply.
    """
    try:
        record = json.loads(text)
    except RecursionError:
        raise ValueError('nested too deeply') from None
    except ValueError:
        raise NotJson('not JSON') from None
    return _check_type(dict, 'not an object', record)  # type: ignore[no-any-return]


def decode(kind: Type[T], value: Any) -> T:
    """Convert a value from ``json.loads`` to the type ``kind``, e.g. a dataclass or ``Dict[int, int]``.

    Integer values are counts, and must be >= 0; integer keys of a dict are labels, which may be negative. Keys of an
    object that are not fields of the dataclass are ignored.

    Raises:
        ValueError: The value does not match the type; the message says where and why.

    Example:
        >>> decode(Dict[int, int], {'-1': 3})
        {-1: 3}
        >>> decode(Dict[str, List[int]], {'a': [1, -1]})
        Traceback (most recent call last):
            ...
        ValueError: a: -1 is out of range
    """
    return _choose_decoder(kind)(value)  # type: ignore[no-any-return, arg-type]


@lru_cache(maxsize=None)
def _choose_decoder(kind: Any) -> Decode:
    if kind is Any:
        return lambda value: value
    if kind in _SCALARS:
        return _SCALARS[kind]
    if is_dataclass(kind):
        return _decode_dataclass(kind)
    arguments = get_args(kind)
    if get_origin(kind) is list:
        return partial(_decode_list, _choose_decoder(arguments[0]))
    if get_origin(kind) is dict:
        key = _decode_label if arguments[0] is int else _choose_decoder(arguments[0])
        return partial(_decode_dict, key, _choose_decoder(arguments[1]))
    if get_origin(kind) is Union:  # Optional
        return partial(_decode_optional, _choose_decoder(arguments[0]))
    raise TypeError(f'no decoder for {kind}')


def _decode_dataclass(kind: Any) -> Decode:
    hints = get_type_hints(kind)
    known = {field.name: _choose_decoder(hints[field.name]) for field in fields(kind) if field.init}
    needed = [f.name for f in fields(kind) if f.init and f.default is MISSING and f.default_factory is MISSING]

    def decode(value: Any) -> Any:
        record = _check_type(dict, 'not an object', value)
        for name in needed:
            if name not in record:
                raise ValueError(f'no {name!r}')
        return kind(**{name: _decode_field(name, known[name], record[name]) for name in record if name in known})

    return decode


def _decode_list(item: Decode, value: Any) -> List[Any]:
    return [item(one) for one in _check_type(list, 'not a list', value)]


def _decode_dict(key: Decode, item: Decode, value: Any) -> Dict[Any, Any]:
    return {
        key(name): _decode_field(name, item, one) for name, one in _check_type(dict, 'not an object', value).items()
    }


def _decode_optional(item: Decode, value: Any) -> Any:
    return None if value is None else item(value)


def _decode_field(name: str, decode: Decode, value: Any) -> Any:
    try:
        return decode(value)
    except ValueError as error:
        raise ValueError(f'{name:.100}: {error}') from None


def _decode_integer(limit: int, value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f'{_shorten(value)} is not an integer')
    if not 0 <= value <= limit:
        raise ValueError(f'{_shorten(value)} is out of range')
    return value


def _decode_label(value: str) -> int:
    try:
        label = int(value)
    except ValueError:
        raise ValueError(f'{_shorten(value)} is not an integer') from None
    if not -(1 << 63) <= label < 1 << 63:
        raise ValueError(f'{_shorten(value)} is out of range')
    return label


def _check_type(kind: type, reason: str, value: Any) -> Any:
    if type(value) is not kind:
        raise ValueError(f'{_shorten(value)} is {reason}')
    return value


def _shorten(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return 'a list' if isinstance(value, list) else 'an object'
    if isinstance(value, int) and abs(value) > _MOST:  # Python prints no more than 4,300 digits
        return f'a number of {value.bit_length()} bits'
    text = json.dumps(value)
    return text if len(text) <= 40 else f'{text[:40]}...'


_SCALARS: Dict[Any, Decode] = {
    int: partial(_decode_integer, _MOST),
    Rank: partial(_decode_integer, _RANKS),
    str: partial(_check_type, str, 'not a string'),
    bool: partial(_check_type, bool, 'neither true nor false'),
}
