"""Pickles of plain data: nothing that a pickle names is imported or called, and no few bytes become much."""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import Any

from mmguard.files.plain_data import DEEPEST, is_nested

#: Keeps an object under a number: one beyond all reason makes the unpickler take a table of that size.
_PUTS = ('PUT', 'BINPUT', 'LONG_BINPUT')
#: Takes an object again: parts that share parts are more values than a file has bytes.
_GETS = ('GET', 'BINGET', 'LONG_BINGET', 'DUP')


class RefusedName(pickle.UnpicklingError):
    """A pickle names a class or a function that is not to be called."""


class _PlainData(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise RefusedName(f'it names {module}.{name}, which is no plain data')


def load_plain_pickle(content: bytes) -> Any:
    """Load lists, dicts, tuples, texts and numbers, none of which is referred to twice.

    Args:
        content (bytes): The pickle.

    Raises:
        RefusedName: It names anything else (a class, a function, a numpy array).
        pickle.UnpicklingError: It is damaged, or refers to its parts.
        Exception: Whatever else a damaged pickle raises.

    Example:
        >>> load_plain_pickle(pickle.dumps([1.0, 2.5]))
        [1.0, 2.5]
    """
    try:
        for operation, argument, _ in pickletools.genops(content):
            if operation.name in ('GLOBAL', 'INST', 'STACK_GLOBAL'):
                break  # refused by its name below
            if operation.name in _GETS:
                raise pickle.UnpicklingError('it is a pickle whose parts refer to each other')
            if operation.name in _PUTS and int(argument or 0) > len(content):
                raise pickle.UnpicklingError(f'it is damaged: {argument:,} objects in {len(content):,} bytes')
    except ValueError as error:
        raise pickle.UnpicklingError(f'it is damaged: {error}') from error
    data = _PlainData(io.BytesIO(content)).load()
    if is_nested(data, DEEPEST):
        raise pickle.UnpicklingError(f'it is a pickle that is nested more than {DEEPEST} levels deep')
    return data
