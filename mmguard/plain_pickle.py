"""Pickles of plain data, read without their reach: a pickle may name functions, and loading it would call them."""

from __future__ import annotations

import pickle
from typing import IO, Any


class _PlainData(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f'it names {module}.{name}, which is no plain data')


def load_plain_pickle(file: IO[bytes]) -> Any:
    """Loads lists, dicts, tuples, texts and numbers.

    Args:
        file (file): Open for reading bytes.

    Raises:
        pickle.UnpicklingError: It names anything else (a class, a function, a numpy array), or is damaged.
        Exception: Whatever else a damaged pickle raises.

    Example:
        >>> import io
        >>> load_plain_pickle(io.BytesIO(pickle.dumps([1.0, 2.5])))
        [1.0, 2.5]
    """
    return _PlainData(file).load()
