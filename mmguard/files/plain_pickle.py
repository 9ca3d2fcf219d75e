"""Pickles of plain data: nothing that a pickle names is imported or called, and no few bytes become much."""

from __future__ import annotations

import os
import pickle
import pickletools
from typing import IO, Any, Dict, List, Optional

from mmguard.files.plain_data import LARGEST, NotPlain, check_spread

#: Values for each byte. Parts that many others share are rare: the texts that are keys.
_SPREAD = 16
_PUTS = ('PUT', 'BINPUT', 'LONG_BINPUT')
_GETS = ('GET', 'BINGET', 'LONG_BINGET')


class RefusedName(pickle.UnpicklingError):
    """A pickle names a class or a function that is not to be called."""


class PlainData(pickle.Unpickler):
    """Refuses every class and function; a subclass may know some that are harmless.

    Args:
        file (file): Open for reading bytes, and for going back in them.
    """

    def __init__(self, file: IO[bytes], **options: Any) -> None:
        super().__init__(file, **options)
        self._file = file

    def load(self) -> Any:
        most = _check_operations(self._file)
        data = super().load()
        try:
            check_spread(data, most, 'a pickle')
        except NotPlain as error:
            raise pickle.UnpicklingError(f'it is {error}') from None
        return data

    def find_class(self, module: str, name: str) -> Any:
        raise RefusedName(f'it names {module}.{name}, which is no plain data')


def _check_operations(file: IO[bytes]) -> int:
    """Look at the operations of a pickle before one is done, and return how many values it may hold.

    An object that is to be kept under a number beyond all reason makes the unpickler take a table of that size. Tuples
    that share their parts are hashed as keys of a dict, part by part, before anybody can look at them.

    Raises:
        pickle.UnpicklingError: There is either, or the pickle is damaged.
    """
    start = file.tell()
    most = max(LARGEST, _SPREAD * (file.seek(0, os.SEEK_END) - start))
    file.seek(start)
    stack: List[Optional[int]] = []  # values of each object; None: a mark
    memo: Dict[int, int] = {}
    try:
        for operation, argument, place in pickletools.genops(file):
            # As many as there are bytes cannot be kept.
            length, number = (place or 0) - start, argument if isinstance(argument, int) else -1
            if operation.name in _PUTS and number > length:
                raise pickle.UnpicklingError(f'it is damaged: {number:,} objects in {length:,} bytes')
            if operation.name in _PUTS or operation.name == 'MEMOIZE':
                memo[len(memo) if operation.name == 'MEMOIZE' else number] = stack[-1] or 0
            elif operation.name in _GETS:
                stack.append(memo.get(number, 1))
            elif operation.name == 'MARK':
                stack.append(None)
            else:
                size = 1 + _take(stack, operation.stack_before)
                if size > most:
                    raise pickle.UnpicklingError(f'it is a pickle whose shared parts spread to over {most:,} values')
                stack += [size] * len(operation.stack_after)
    except (ValueError, IndexError) as error:
        raise pickle.UnpicklingError(f'it is damaged: {error}') from error
    file.seek(start)
    return most


def _take(stack: List[Optional[int]], before: List[Any]) -> int:
    """Take what an operation takes from the stack, and return how many values that is."""
    taken = 0
    single = len(before)
    if pickletools.markobject in before:
        single = before.index(pickletools.markobject)
        while True:
            size = stack.pop()
            if size is None:
                break
            taken += size
    for _ in range(single):
        taken += stack.pop() or 0
    return taken


def load_plain_pickle(file: IO[bytes]) -> Any:
    """Load lists, dicts, tuples, texts and numbers.

    Args:
        file (file): Open for reading bytes.

    Raises:
        RefusedName: It names anything else (a class, a function, a numpy array).
        pickle.UnpicklingError: It is damaged, or refers to its parts so often that they are too many.
        Exception: Whatever else a damaged pickle raises.

    Example:
        >>> import io
        >>> load_plain_pickle(io.BytesIO(pickle.dumps([1.0, 2.5])))
        [1.0, 2.5]
    """
    return PlainData(file).load()
