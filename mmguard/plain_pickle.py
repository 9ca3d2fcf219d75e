"""Pickles of plain data, read without their reach: a pickle may name functions, and loading it would call them."""

from __future__ import annotations

import pickle
from typing import IO, Any


class RefusedName(pickle.UnpicklingError):
    """A pickle names a class or a function that is not to be called."""


class PlainData(pickle.Unpickler):
    """Refuses every class and function; a subclass may know some that are harmless."""

    def find_class(self, module: str, name: str) -> Any:
        raise RefusedName(f'it names {module}.{name}, which is no plain data')


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
