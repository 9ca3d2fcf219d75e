"""Pickles of plain data and of numpy's numbers, read without numpy's own way to build them."""

from __future__ import annotations

import pickle
import re
from typing import IO, Any, Callable, Dict, Optional, Tuple

import numpy as np

from mmguard.files.plain_pickle import PlainData

#: Booleans, integers, fractions, texts and bytes; an array of objects, or of records, is no plain data.
_KIND = re.compile(r'(\||<|>|=)?(b1|[iu][1248]|f[248]|[SU]\d{1,6})')


class _Kind:
    """Stands for a dtype."""

    def __init__(self, text: Any, *_: Any) -> None:
        if not isinstance(text, str) or not _KIND.fullmatch(text):
            raise pickle.UnpicklingError(f'it holds an array of {text!r:.40}, which is no plain data')
        self.dtype = np.dtype(text)

    def __setstate__(self, state: Any) -> None:
        order: Any = state[1] if isinstance(state, tuple) and len(state) > 1 else '|'
        if order in ('<', '>', '='):
            self.dtype = self.dtype.newbyteorder(order)


class PlainArray:
    """Stands for an array: its numbers as lists, once they are asked for."""

    def __init__(self, *_: Any) -> None:
        self._values: Optional[np.ndarray] = None

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, in_columns, data = state
        self._values = _array(data, kind, shape, 'F' if in_columns else 'C')

    def tolist(self) -> Any:
        return [] if self._values is None else self._values.tolist()

    @classmethod
    def of_buffer(cls, data: Any, kind: Any, shape: Any, order: Any) -> PlainArray:
        """What protocol 5 builds arrays with."""
        made = cls()
        made._values = _array(data, kind, shape, 'F' if order == 'F' else 'C')
        return made


def _array(data: Any, kind: Any, shape: Any, order: Any) -> np.ndarray:
    if not isinstance(kind, _Kind) or not isinstance(data, (bytes, bytearray)):
        raise pickle.UnpicklingError('it is damaged: an array without its numbers')
    return np.frombuffer(data, kind.dtype).reshape(shape, order=order)


def _scalar(kind: Any, data: Any = b'') -> Any:
    return _array(data, kind, (), 'C').item()


def _encode(text: str, *_: Any) -> bytes:
    return text.encode('latin1')  # how protocol 2 writes bytes


def _no_bytes() -> bytes:
    return b''  # the same of none


_MODULES = ('numpy.core.multiarray', 'numpy._core.multiarray', 'numpy.core.numeric', 'numpy._core.numeric')
_KNOWN: Dict[Tuple[str, str], Callable[..., Any]] = {
    ('numpy', 'ndarray'): PlainArray,
    ('numpy', 'dtype'): _Kind,
    ('_codecs', 'encode'): _encode,
    ('__builtin__', 'bytes'): _no_bytes,
    **{(module, '_reconstruct'): PlainArray for module in _MODULES},
    **{(module, 'scalar'): _scalar for module in _MODULES},
    **{(module, '_frombuffer'): PlainArray.of_buffer for module in _MODULES},
}


class _PlainNumbers(PlainData):
    def find_class(self, module: str, name: str) -> Any:
        return _KNOWN.get((module, name)) or super().find_class(module, name)


def load_plain_arrays(file: IO[bytes]) -> Any:
    """Loads lists, dicts, tuples, texts, numbers, and arrays of them; a number of numpy becomes one of Python.

    Args:
        file (file): Open for reading bytes.

    Raises:
        RefusedName: It names anything else (a class, a function).
        pickle.UnpicklingError: It is damaged, or holds an array of objects.
        Exception: Whatever else a damaged pickle raises.

    Example:
        >>> import io
        >>> load_plain_arrays(io.BytesIO(pickle.dumps({'box': np.array([1.0, 2.5])})))['box'].tolist()
        [1.0, 2.5]
    """
    return _PlainNumbers(file).load()
