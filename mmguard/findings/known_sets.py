"""Numberings and palettes of label maps in well-known data sets."""

from __future__ import annotations

from itertools import product
from math import floor
from typing import Dict, Iterable, Set, Tuple

#: Cityscapes: id -> train id, 255 outside of the 19 classes.
_CITYSCAPES = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)
CITYSCAPES_TRAIN_IDS: Dict[int, int] = {
    **dict.fromkeys(range(34), 255),
    **{value: label for label, value in enumerate(_CITYSCAPES)},
}

#: COCO-Stuff: id - 1, as stored in its maps -> class. Missing ids have no name.
_NO_CLASS = {11, 25, 28, 29, 44, 65, 67, 68, 70, 82, 90}
COCO_STUFF_CLASSES: Dict[int, int] = {
    value: label for label, value in enumerate(value for value in range(182) if value not in _NO_CLASS)
}

#: Cityscapes: ids of rare classes that the benchmark does not evaluate.
CITYSCAPES_RARE = frozenset({9, 10, 14, 15, 16, 18, 29, 30})

Color = Tuple[int, int, int]


def compute_voc_color(label: int) -> Color:
    """Return the color of a label in PASCAL VOC's palette, which labelme and most tools use.

    Example:
        >>> [compute_voc_color(label) for label in (0, 1, 2, 3)]
        [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
    """
    red = green = blue = 0
    for shift in range(7, -1, -1):
        red |= (label & 1) << shift
        green |= (label >> 1 & 1) << shift
        blue |= (label >> 2 & 1) << shift
        label >>= 3
    return red, green, blue


VOC: Dict[Color, int] = {compute_voc_color(label): label for label in range(256)}

_CITYSCAPES_COLORS: Tuple[Color, ...] = (
    (128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153), (153, 153, 153), (250, 170, 30),
    (220, 220, 0), (107, 142, 35), (152, 251, 152), (70, 130, 180), (220, 20, 60), (255, 0, 0), (0, 0, 142),
    (0, 0, 70), (0, 60, 100), (0, 80, 100), (0, 0, 230), (119, 11, 32),
)  # fmt: skip
#: Colors of Cityscapes that do not belong to the 19 classes.
_CITYSCAPES_VOID: Tuple[Color, ...] = (
    (0, 0, 0), (111, 74, 0), (81, 0, 81), (250, 170, 160), (230, 150, 140), (180, 165, 180), (150, 100, 100),
    (150, 120, 90), (0, 0, 90), (0, 0, 110),
)  # fmt: skip


def compute_grays(palette: Iterable[Tuple[Color, int]]) -> Dict[int, int]:
    """Return {gray: label} for a palette, with grays rounded (OpenCV, Pillow) and truncated (their older versions).

    If two labels share a gray (in VOC, 1 and 16 both become 38), the first is kept, because its class is more common.
    """
    found: Dict[int, int] = {}
    exact = [(0.299 * r + 0.587 * g + 0.114 * b, label) for (r, g, b), label in palette]
    for whole in (round, int):
        for gray, label in exact:
            found.setdefault(whole(gray), label)
    return found


#: Weights of red, green and blue in a gray value: in Pillow and OpenCV, the same with red and blue swapped, in
#: scikit-image, for the mean, and for a single channel.
_GRAY_WEIGHTS = (
    (0.299, 0.587, 0.114), (0.114, 0.587, 0.299), (0.2125, 0.7154, 0.0721), (1 / 3, 1 / 3, 1 / 3), (1, 0, 0),
    (0, 1, 0), (0, 0, 1),
)  # fmt: skip
#: Maximum difference between grays in floating-point and in fixed-point arithmetic.
_INEXACT = 0.01
#: Maximum probability that unrelated values are grays of a palette by chance.
_BY_CHANCE = 0.005


def match_grays(palette: Iterable[Tuple[Color, int]], values: Set[int]) -> Dict[int, int]:
    """Return {value: label} if all values are grays of a palette's colors with only one possible label each, else {}.

    Example:
        >>> match_grays([((0, 0, 0), 0), ((0, 0, 200), 1), ((120, 120, 120), 2)], {0, 23, 120})
        {0: 0, 23: 1, 120: 2}
        >>> match_grays([((0, 0, 0), 0), ((0, 0, 200), 1), ((200, 0, 0), 2)], {0, 23, 60})  # red and blue swapped?
        {}
    """
    pairs, tables = list(palette), set()
    for weights, shift in product(_GRAY_WEIGHTS, (0.5, 0)):  # rounded, or truncated
        labels_of: Dict[int, Set[int]] = {}
        for color, label in pairs:
            gray = sum(weight * part for weight, part in zip(weights, color)) + shift
            for inexact in (-_INEXACT, _INEXACT):
                labels_of.setdefault(floor(gray + inexact), set()).add(label)
        by_chance = (len(labels_of) / 256) ** len(values - {0})
        if by_chance < _BY_CHANCE and all(len(labels_of.get(value, ())) == 1 for value in values):
            tables.add(tuple((value, min(labels_of[value])) for value in sorted(values)))
    return dict(tables.pop()) if len(tables) == 1 else {}


CITYSCAPES: Dict[Color, int] = {color: label for label, color in enumerate(_CITYSCAPES_COLORS)}
CITYSCAPES.update(dict.fromkeys(_CITYSCAPES_VOID, 255))
