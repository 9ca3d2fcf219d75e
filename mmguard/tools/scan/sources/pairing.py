"""Which image a label map belongs to, by its name."""

from __future__ import annotations

import os
from typing import Dict, List, Tuple

#: What label files have at the end of their stem and images have not, or have otherwise; the longest come first.
LABEL_TAILS = (
    '_gtFine_labelTrainIds', '_gtFine_labelIds', '_gtFine_color', '_gtCoarse_labelTrainIds', '_gtCoarse_labelIds',
    '_instance_color_RGB', '_segmentation', '_labelTrainIds', '_train_id', '_manual1', '_labels', '_label', '_mask',
    '_masks', '_seg', '_gt', '_L', '-label', '-mask', '.label', '.mask',
)  # fmt: skip
IMAGE_TAILS = ('_leftImg8bit', '_image', '_img', '_rgb', '_sat')


def label_key(stem: str) -> str:
    """The part of a label file's stem that it shares with its image.

    Example:
        >>> label_key('aachen_000000_000019_gtFine_labelIds')
        'aachen_000000_000019'
    """
    return _without(stem, LABEL_TAILS)


def image_key(stem: str) -> str:
    """The same of an image."""
    return _without(stem, IMAGE_TAILS)


def _without(stem: str, tails: Tuple[str, ...]) -> str:
    tail = next((tail for tail in tails if stem.endswith(tail) and len(stem) > len(tail)), '')
    return stem[: len(stem) - len(tail)]


class Partners:
    """The images of one folder, to be found by the stems of labels.

    Args:
        names (list[str]): File names of the images.
    """

    def __init__(self, names: List[str]) -> None:
        self._by_stem: Dict[str, str] = {}
        self._by_key: Dict[str, str] = {}
        for name in names:
            stem = os.path.splitext(name)[0]
            self._by_stem.setdefault(stem, name)
            self._by_key.setdefault(image_key(stem), name)
        self._found = set()  # type: ignore[var-annotated]

    def of(self, label_stem: str) -> str:
        """The image of a label; ``''`` if there is none."""
        name = self._by_stem.get(label_stem) or self._by_key.get(label_key(label_stem), '')
        self._found.add(name)
        return name

    def without_label(self) -> List[str]:
        """The images that no label asked for."""
        return [name for name in self._by_stem.values() if name not in self._found]
