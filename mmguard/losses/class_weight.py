"""Reading of ``class_weight``: a list, a tensor or a file."""

from __future__ import annotations

import math
import os
from typing import Any, List, Optional, Sequence, Union

import numpy as np
import torch
from mmengine import fileio

from mmguard.files.plain_data import parse_weights
from mmguard.text.words import short

NUMBER = (int, float, np.integer, np.floating)

ClassWeight = Union[Sequence[float], np.ndarray, torch.Tensor, str, 'os.PathLike[str]']


def load_class_weight(class_weight: Optional[ClassWeight]) -> Optional[List[float]]:
    """Returns the weights as a list of floats, one per class.

    Args:
        class_weight: A list, array or tensor of numbers, or the path of a ``.npy``, ``.json`` or ``.yaml`` file that
            holds one (any mmengine file backend).

    Raises:
        ValueError: An unknown or refused file type, or content that is not a flat list of finite numbers.
        TypeError: Something else than the above.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, (str, os.PathLike)):
        path = os.fspath(class_weight)
        return _checked(_read(path), f'class_weight file {path}')
    return _checked(class_weight, 'class_weight')


def _read(path: str) -> Any:
    suffix = os.path.splitext(path)[1].lower()
    if suffix in ('.pkl', '.pickle'):
        raise ValueError(
            f'class_weight file {path}: a pickle can run code when it is read. Save the weights as .json or .npy, '
            f'e.g. json.dump(weights, open("class_weight.json", "w"))'
        )
    if suffix not in ('.npy', '.json', '.yaml', '.yml'):
        raise ValueError(f'class_weight file {path}: unknown type {suffix!r}; use .npy, .json or .yaml')
    content = fileio.get(path)
    try:
        return parse_weights(content, suffix)
    except (ValueError, EOFError) as error:
        raise ValueError(f'class_weight file {path} cannot be read as {suffix}: {error}') from error


def _checked(weights: Any, name: str) -> List[float]:
    if isinstance(weights, (torch.Tensor, np.ndarray)):
        weights = weights.tolist()
    if not isinstance(weights, (list, tuple)):
        raise TypeError(
            f'{name} must be a list with one number per class, got {type(weights).__name__}: {short(weights)}'
        )
    wrong = {
        index: weight
        for index, weight in enumerate(weights)
        if isinstance(weight, bool) or not isinstance(weight, NUMBER) or not math.isfinite(weight)
    }
    if wrong:
        raise ValueError(f'{name} must be a flat list of finite numbers, one per class; wrong at {short(wrong, 200)}')
    # Not a copy: who holds the list may change it, as with the stock losses.
    return weights if isinstance(weights, list) else [float(weight) for weight in weights]
