"""Class weights as a config gives them: a list, or, in mmseg, the name of a file that holds one."""

from __future__ import annotations

import json
import math
import os
from typing import Any, List, NamedTuple, Optional

from mmguard.check.parts import Part
from mmguard.plain_pickle import load_plain_pickle

#: More is no file of class weights.
_LARGEST = 1 << 22


class ClassWeights(NamedTuple):
    """The class weights of a loss.

    Attributes:
        values (list[float]): Empty where there are none, or none that could be read.
        length (int, optional): How many there are; ``None`` where that is not known.
        problem (str): Why their file cannot be read, in words; empty where it can, and where there is no file.
    """

    values: List[float]
    length: Optional[int] = None
    problem: str = ''


def class_weights(loss: Part) -> ClassWeights:
    """The class weights of a loss, from their file where they are in one. No code in a file is run.

    Args:
        loss (Part): A loss. A file is looked for from the working directory, as training does.
    """
    given = loss.config.get('class_weight')
    if isinstance(given, str) and loss.scope == 'mmseg':
        try:
            values = _numbers(_load(given))
            return ClassWeights(values, len(values))
        except OSError as error:
            return ClassWeights([], problem=f'{given}: {error.strerror or error}')
        except Exception as error:  # a damaged file raises what it likes
            return ClassWeights([], problem=f'{given}: {type(error).__name__}: {error}')
    if not isinstance(given, (list, tuple)):
        return ClassWeights([])
    return ClassWeights([float(w) for w in given if isinstance(w, (int, float))], len(given))


def _load(path: str) -> Any:
    """As mmseg's ``get_class_weight``: .npy, else .json, .yaml or .pkl, by the ending."""
    ending = os.path.splitext(path)[1].lower()
    if not os.path.isfile(path):
        raise FileNotFoundError(2, 'there is no such file (from here)')
    if os.path.getsize(path) > _LARGEST:
        raise ValueError('too large for a file of class weights')
    with open(path, 'rb') as file:
        if ending == '.npy':
            import numpy as np

            return np.load(file, allow_pickle=False).tolist()
        if ending == '.json':
            return json.load(file)
        if ending in ('.yml', '.yaml'):
            import yaml

            return yaml.safe_load(file)
        if ending in ('.pkl', '.pickle'):
            return load_plain_pickle(file)
    raise ValueError('mmseg loads class weights from .npy, .json, .yaml and .pkl')


def _numbers(values: Any) -> List[float]:
    if not isinstance(values, (list, tuple)):
        raise ValueError(f'it holds no list: {str(values)[:40]}')
    numbers = [float(value) for value in values]
    if any(math.isnan(number) for number in numbers):
        raise ValueError('it holds NaN')
    return numbers
