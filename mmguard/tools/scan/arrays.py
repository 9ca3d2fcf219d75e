"""Label maps of numpy (.npy). Never unpickled."""

from __future__ import annotations

from typing import BinaryIO

import numpy as np

from mmguard.tools.scan.faults import NoLabels

ARRAY_ENDING = '.npy'
#: More bytes are no label map.
_LARGEST = 1 << 31
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def is_array_name(name: str) -> bool:
    return name.lower().endswith(ARRAY_ENDING) and not name.startswith('.')


def read_array(file: BinaryIO, size: int) -> np.ndarray:
    """Reads a label map, (H, W), of booleans, integers or fractions.

    Args:
        file (BinaryIO): The opened file.
        size (int): Its bytes.

    Raises:
        NoLabels: It holds something else.
        Exception: It is damaged; numpy raises what it likes.
    """
    header = _HEADERS.get(np.lib.format.read_magic(file))
    if header is None:
        raise NoLabels('a newer version of .npy')
    shape, in_columns, kind = header(file)
    if kind.hasobject:
        raise NoLabels('Python objects, which are not unpickled')
    if kind.kind not in 'biuf':
        raise NoLabels('no numbers')
    if len(shape) == 3 and 1 in shape:  # (1, H, W) and (H, W, 1)
        shape = shape[1:] if shape[0] == 1 else shape[:-1]
    if len(shape) != 2:
        raise NoLabels(f'{len(shape)} dimensions')
    if min(shape) <= 1:
        raise NoLabels('one row or column')
    wanted = shape[0] * shape[1] * kind.itemsize
    if wanted > _LARGEST:
        raise MemoryError(f'{wanted:,} bytes')
    data = file.read(wanted) if wanted <= size else b''
    if len(data) < wanted:
        raise OSError(f'truncated: {size:,} bytes cannot hold {shape[0]} x {shape[1]} numbers')
    values = np.frombuffer(data, kind).reshape(shape, order='F' if in_columns else 'C')
    return values.astype(kind.newbyteorder('='))


def form_of_array(values: np.ndarray) -> str:
    """The form of a label map, as :func:`mmguard.tools.scan.forms.form_of` names it: by its values, for numpy's
    integers are wide unless somebody asks for less."""
    if values.dtype.kind in 'bf':
        return 'bool' if values.dtype.kind == 'b' else 'float'
    if 0 <= values.min() <= values.max() <= 255:
        return 'gray8'
    return 'gray16' if values.dtype.itemsize == 2 else 'gray32'
