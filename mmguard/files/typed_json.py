"""JSON decoding into dataclasses; values of the wrong type, size or sign are refused with a message.

msgspec does the same, but a report has to run with only torch and numpy.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache, partial
from typing import Any, Callable, Dict, List, NewType, Type, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar('T')
Decode = Callable[[Any], Any]

#: Number of a process, or number of processes; one above _RANKS is refused, since no training has had so many.
Rank = NewType('Rank', int)
_RANKS = 1 << 20
#: Largest integer that every reader of JSON supports.
_MOST = 1 << 53


class NotJson(ValueError):
    """A text that is not JSON, e.g. a truncated one."""


def parse_object(text: bytes) -> Dict[str, Any]:
    """Parse a text into a JSON object.

    Raises:
        NotJson: The text is not JSON.
        ValueError: The JSON is not an object; the message names its type.
    """
    try:
        record = json.loads(text)
    except RecursionError:
        raise ValueError('nested too deeply') from None
    except ValueError:
        raise NotJson('not JSON') from None
    return _check_type(dict, 'not an object', record)  # type: ignore[no-any-return]


def decode(kind: Type[T], value: Any) -> T:
    """Convert the result of ``json.loads`` to a type.

    Integers are counts, at least 0; as keys of a dict they are labels, of any sign. Keys without a field in a dataclass
    are ignored.

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
