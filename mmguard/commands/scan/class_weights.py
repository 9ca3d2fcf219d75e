"""Weights of the classes for a loss, from the pixels of a data set."""

from __future__ import annotations

from math import log
from statistics import median
from typing import Callable, Dict, List, Sequence

from mmguard.facts.labels import LabelFacts

#: Weight of a class without a pixel: its frequency has no inverse, and 1 is what a loss without weights uses.
UNSEEN = 1.0


def compute_enet_weights(pixels: Sequence[int], pixels_of_files: Sequence[int] = ()) -> List[float]:
    """Return 1 / ln(1.02 + p) for each class, with its share p of all pixels.

    The weights are between 1.4 and 50.5. Source: Paszke et al., "ENet", arXiv:1606.02147.

    Args:
        pixels (Sequence[int]): Pixels of each class.
        pixels_of_files (Sequence[int]): Not used.

    Example:
        >>> [round(weight, 2) for weight in compute_enet_weights([90, 10, 0])]
        [1.53, 8.82, 1.0]
    """
    total = sum(pixels)
    return [1 / log(1.02 + count / total) if count else UNSEEN for count in pixels]


def compute_median_frequency_weights(pixels: Sequence[int], pixels_of_files: Sequence[int]) -> List[float]:
    """Return median(f) / f for each class, with its share f of the pixels of those files that contain it.

    Source: Eigen and Fergus, "Predicting Depth, Surface Normals and Semantic Labels", arXiv:1411.4734.

    Args:
        pixels (Sequence[int]): Pixels of each class.
        pixels_of_files (Sequence[int]): For each class, the pixels of all classes in the files that contain it.

    Example:
        >>> compute_median_frequency_weights([80, 20, 10, 0], [100, 100, 50, 0])
        [0.25, 1.0, 1.0, 1.0]
    """
    shares = [count / whole if count else 0.0 for count, whole in zip(pixels, pixels_of_files)]
    middle = median(share for share in shares if share)
    return [middle / share if share else UNSEEN for share in shares]


#: Name -> its function.
FORMULAS: Dict[str, Callable[[Sequence[int], Sequence[int]], List[float]]] = {
    'enet': compute_enet_weights,
    'median_frequency': compute_median_frequency_weights,
}


def weigh_classes(labels: LabelFacts) -> Dict[str, List[float]]:
    """Return formula -> weights of the classes, from the pixels that are neither ignored nor invalid.

    Returns:
        dict[str, list[float]]: Empty if the data set is not for training, has no label maps or no valid pixel, if the
        number of classes is unknown, or if the labels that the config's loader returns differ from those of the scan.
    """
    is_training = not labels.split or 'train' in labels.split.split(', ')
    if labels.maps is None or not is_training or not labels.has_known_classes:
        return {}
    if labels.loader is not None and labels.loader.differing:
        return {}
    pixels = _count_pixels(labels)
    if not any(pixels):
        return {}
    pixels_of_files = [labels.maps.pixels_with_class.get(label, 0) for label in range(labels.num_classes)]
    return {name: formula(pixels, pixels_of_files) for name, formula in FORMULAS.items()}


def list_unseen_classes(labels: LabelFacts) -> List[int]:
    """Return the classes without a pixel."""
    return [label for label, count in enumerate(_count_pixels(labels)) if not count]


def _count_pixels(labels: LabelFacts) -> List[int]:
    """Return the pixels of each class; none for a class that is ignored."""
    counts = {**labels.histogram, **({} if labels.ignore_index is None else {labels.ignore_index: 0})}
    return [counts.get(label, 0) for label in range(labels.num_classes)]
