"""A file in pictures: the image and its label map, with what is invalid."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Callable, List, Optional, Sequence, Tuple

import numpy as np

from mmguard.labels.space import value_counts
from mmguard.tools.report.page import WorstFile
from mmguard.tools.report.pictures import (
    IGNORED,
    LOUD,
    CannotDraw,
    Picture,
    coloured,
    css_colour,
    marked_photo,
    photo,
    read_label,
)

#: Classes that the key of a label map names.
_NAMED = 6


@dataclass
class Panel:
    """A picture.

    Args:
        name (str): What it shows.
        picture (Picture, optional): ``None``: it cannot be drawn.
        why (str): Then, why not.
        keys (list[tuple]): (colour, what it stands for); one without a colour is words alone.
        crisp (bool): Pixels are not blurred where it is enlarged.
    """

    name: str
    picture: Optional[Picture] = None
    why: str = ''
    keys: List[Tuple[str, str]] = field(default_factory=list)
    crisp: bool = False


def panels_of(file: WorstFile, ignore_index: Optional[int]) -> List[Panel]:
    """The pictures of a file.

    Args:
        file (WorstFile): With a label map.
        ignore_index (int, optional): Of its section, where the file does not say what is ignored.
    """
    image, stored = file.image_path, file.label_path
    assert stored is not None
    try:
        label = read_label(stored)
    except CannotDraw as error:
        why = str(error)
        plain = _drawn('label map', lambda: Panel(f'label file: {why}', photo(stored)))
        image_alone = [_drawn('image', lambda: Panel('image', photo(image)))] if image else []
        return [*image_alone, replace(plain, why=why)]
    invalid = np.isin(label, list(file.values))
    panels = []
    if image is not None:
        keys = [(_rgb(LOUD), 'invalid pixels')]
        panels = [_drawn('image', lambda: Panel('image,', marked_photo(image, label, invalid), keys=keys))]
    if label.dtype.kind == 'f':
        return [*panels, Panel('label map', why=f'{label.dtype} values: a label map holds integers')]
    ignored = file.ignored
    if ignored is None:
        ignored = [] if ignore_index is None else [ignore_index]
    panels.append(Panel('label', coloured(label, invalid, ignored), keys=_keys(label, file, ignored), crisp=True))
    return panels


def _drawn(name: str, draw: Callable[[], Panel]) -> Panel:
    try:
        return draw()
    except CannotDraw as error:
        return Panel(name, why=str(error))


def _keys(label: np.ndarray, file: WorstFile, ignored: Sequence[int]) -> List[Tuple[str, str]]:
    counts = value_counts(label)
    common = sorted(counts, key=lambda value: -counts[value])
    classes = [value for value in common if value not in file.values and value not in ignored]
    keys = [(css_colour(value), str(value)) for value in classes[:_NAMED]]
    if len(classes) > _NAMED:
        keys.append(('', f'{len(classes) - _NAMED} more'))
    if any(value in counts for value in ignored):
        keys.append((_rgb(IGNORED), 'ignored'))
    return [*keys, (_rgb(LOUD), 'invalid')] if file.values else keys


def _rgb(colour: Tuple[int, int, int]) -> str:
    return 'rgb({},{},{})'.format(*colour)
