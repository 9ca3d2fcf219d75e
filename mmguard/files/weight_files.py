"""Files of class weights, as mmseg takes them: .npy, .json, .yaml and .pkl."""

from __future__ import annotations

import io
from typing import Any

from mmguard.files.plain_data import NotPlain, parse_data
from mmguard.files.plain_pickle import load_plain_pickle

#: More bytes are no file of class weights.
LARGEST = 1 << 22


def parse_weights(content: bytes, ending: str) -> Any:
    """Return what a file of class weights holds. No code in it is run.

    Args:
        content (bytes): At most :data:`LARGEST` bytes.
        ending (str): Of its name, ``'.npy'``, ``'.json'``, ``'.yaml'``, ``'.yml'``, ``'.pkl'`` or ``'.pickle'``.

    Raises:
        ValueError: It is damaged or too large, or a .npy holds something else than a list of numbers.
        Exception: Whatever else a damaged file raises.
    """
    if len(content) > LARGEST:
        raise ValueError(f'it is larger than {LARGEST >> 20} MiB')
    if ending == '.npy':
        import numpy as np

        array = np.load(io.BytesIO(content), allow_pickle=False)
        if getattr(array, 'ndim', 0) != 1 or not 0 < len(array) <= len(content):  # numbers of no bytes are many
            raise ValueError(f'it holds no list: an array of shape {getattr(array, "shape", "unknown")}')
        return array.tolist()
    try:
        if ending in ('.pkl', '.pickle'):
            return load_plain_pickle(content)
        return parse_data(content.decode(), '.json' if ending == '.json' else '.yaml')
    except NotPlain as error:
        raise ValueError(f'it is {error}') from error
