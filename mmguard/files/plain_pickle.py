"""Pickles of plain data, read without their reach: a pickle may name functions, and loading it would call them."""

from __future__ import annotations

import pickle
import pickletools
from typing import IO, Any


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
        _check_memo(self._file)
        return super().load()

    def find_class(self, module: str, name: str) -> Any:
        raise RefusedName(f'it names {module}.{name}, which is no plain data')


def _check_memo(file: IO[bytes]) -> None:
    """Looks for objects that are to be kept under a number beyond all reason: the unpickler makes a table of that size.

    Raises:
        pickle.UnpicklingError: There is such an object, or the pickle is damaged.
    """
    start = file.tell()
    try:
        for operation, argument, place in pickletools.genops(file):
            # As many as there are bytes cannot be kept.
            length = (place or 0) - start
            if isinstance(argument, int) and argument > length and operation.name in ('PUT', 'BINPUT', 'LONG_BINPUT'):
                raise pickle.UnpicklingError(f'it is damaged: {argument:,} objects in {length:,} bytes')
    except ValueError as error:
        raise pickle.UnpicklingError(f'it is damaged: {error}') from error
    file.seek(start)


def load_plain_pickle(file: IO[bytes]) -> Any:
    """Loads lists, dicts, tuples, texts and numbers.

    Args:
        file (file): Open for reading bytes.

    Raises:
        RefusedName: It names anything else (a class, a function, a numpy array).
        pickle.UnpicklingError: It is damaged.
        Exception: Whatever else a damaged pickle raises.

    Example:
        >>> import io
        >>> load_plain_pickle(io.BytesIO(pickle.dumps([1.0, 2.5])))
        [1.0, 2.5]
    """
    return PlainData(file).load()
