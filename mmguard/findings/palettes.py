"""Palettes that label files are drawn with: colour -> label."""

from __future__ import annotations

from typing import Dict, Iterable, Tuple

Colour = Tuple[int, int, int]


def voc_colour(label: int) -> Colour:
    """Return the colour of a label in PASCAL VOC's palette, which labelme and most tools copy.

    Example:
        >>> [voc_colour(label) for label in (0, 1, 2, 3)]
        [(0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0)]
    """
    red = green = blue = 0
    for shift in range(7, -1, -1):
        red |= (label & 1) << shift
        green |= (label >> 1 & 1) << shift
        blue |= (label >> 2 & 1) << shift
        label >>= 3
    return red, green, blue


VOC: Dict[Colour, int] = {voc_colour(label): label for label in range(256)}

_CITYSCAPES: Tuple[Colour, ...] = (
    (128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153), (153, 153, 153), (250, 170, 30),
    (220, 220, 0), (107, 142, 35), (152, 251, 152), (70, 130, 180), (220, 20, 60), (255, 0, 0), (0, 0, 142),
    (0, 0, 70), (0, 60, 100), (0, 80, 100), (0, 0, 230), (119, 11, 32),
)  # fmt: skip
#: Colours outside of the 19 classes.
_CITYSCAPES_VOID: Tuple[Colour, ...] = (
    (0, 0, 0), (111, 74, 0), (81, 0, 81), (250, 170, 160), (230, 150, 140), (180, 165, 180), (150, 100, 100),
    (150, 120, 90), (0, 0, 90), (0, 0, 110),
)  # fmt: skip


def grays(palette: Iterable[Tuple[Colour, int]]) -> Dict[int, int]:
    """Return gray -> label, rounded as OpenCV and Pillow do, or truncated as older versions did.

    Where two labels share a gray (1 and 16 of VOC: 38), the first is meant more often.
    """
    found: Dict[int, int] = {}
    exact = [(0.299 * r + 0.587 * g + 0.114 * b, label) for (r, g, b), label in palette]
    for whole in (round, int):
        for gray, label in exact:
            found.setdefault(whole(gray), label)
    return found


CITYSCAPES: Dict[Colour, int] = {colour: label for label, colour in enumerate(_CITYSCAPES)}
CITYSCAPES.update(dict.fromkeys(_CITYSCAPES_VOID, 255))

#: Palettes that were converted to gray: name -> gray -> label.
GRAYS_OF: Dict[str, Dict[int, int]] = {
    'VOC (labelme)': grays((voc_colour(label), label) for label in range(1, 21)),
    'Cityscapes': grays((colour, label) for label, colour in enumerate(_CITYSCAPES)),
}
