"""Readings of loaded samples: labels before and after the pipeline, values of the image, boxes outside of it."""

from __future__ import annotations

from collections import Counter
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np
import torch

from mmguard.properties.datasets import (
    find_innermost,
    seed_all,
    select_indices,
    walk_datasets,
    walk_objects,
    watch_steps,
)
from mmguard.properties.program import MAX_ANNOTATIONS, Program, cache_result
from mmguard.properties.samples import SampleParts, read_parts

#: Number of loads.
LOADS = 16
#: Parts of the names of steps that put several images together, or scale them without saying so.
_MIXING = ('Mosaic', 'MixUp', 'Affine', 'Expand')
#: Offsets of neighbors, and the least ratio of the steepest to the median gradient of an image with shapes.
_NEAR, _SHAPES = (-1, 0, 1), 3.5


class SampleReading(NamedTuple):
    """Labels and values of one loaded sample.

    Attributes:
        before (Counter): Label -> pixels or boxes, right after the labels were loaded.
        after (Counter): The same in the packed sample, without ignored objects.
        ignored (float): Share of ignored pixels in the packed sample.
        black (tuple[float, float]): Share of pixels whose value is 0 and whose label is valid, before and after.
        outside (float): Share of boxes that reach out of the image by more than a pixel, before.
        values (tuple[float, float]): Smallest and largest value of the image that reaches the preprocessor.
        scale (float): Factor by which the pipeline enlarges the image; 0 if unknown.
    """

    before: Counter
    after: Counter
    ignored: float
    black: Tuple[float, float]
    outside: float
    values: Tuple[float, float]
    scale: float


@cache_result
def read_samples(program: Program, split: str) -> List[SampleReading]:
    """Load samples, spread over a data set, and read them; samples that fail or are dropped are left out."""
    dataset, found, failures = program.build_dataset(split), [], 0
    for number, index in enumerate(select_indices(len(dataset), min(LOADS, 2 * program.samples))):
        first: List[SampleParts] = []
        scales: List[float] = []

        def on_step(step: Any, results: Any, first: Any = first, scales: Any = scales) -> Any:
            results = step(results)
            scales.append(_get_scale(step, results))
            parts = read_parts(results) if isinstance(results, dict) else None
            if parts is not None and not first and (parts.label is not None or parts.instances is not None):
                first.append(parts._replace(image=np.array(parts.image), label=_copy(parts.label)))
            return results

        with program.scope(), watch_steps(walk_datasets(dataset), on_step):
            seed_all(number)
            try:
                sample = dataset[index]
                last = read_parts(sample)
            except Exception:  # another property reports it; a data set may try a thousand samples before it fails
                failures += 1
                if failures > 1:
                    break
                continue
        if first and isinstance(sample.get('inputs'), torch.Tensor) and last.image is not None:
            found.append(_read(program, first[0], last, sample, float(np.prod(scales))))
    return found


def _copy(label: Any) -> Any:
    return None if label is None else np.array(label)


def _get_scale(step: Any, results: Any) -> float:
    """Return the factor by which a step enlarges the image; 0 if it mixes images at scales of its own."""
    name = type(step).__name__
    if any(word in name for word in _MIXING):
        return 0.0
    if 'Resize' not in name or not isinstance(results, dict):
        return 1.0
    scale = np.atleast_1d(results.get('scale_factor', 0)).astype(float)
    return float(np.sqrt(scale[0] * scale[-1]))


def _read(program: Program, first: SampleParts, last: SampleParts, sample: Any, scale: float) -> SampleReading:
    void = program.ignore_index if program.has_label_map else None
    inputs = sample['inputs']
    return SampleReading(
        count_labels(first, program.kind, void),
        count_labels(last, program.kind, void),
        float((last.label == void).mean()) if last.label is not None and last.label.size else 0.0,
        (_measure_black(first, void), _measure_black(last, void)),
        _measure_outside(first),
        (float(inputs.min()), float(inputs.max())),
        scale,
    )


def count_labels(parts: SampleParts, kind: str, void: Optional[int]) -> Counter:
    """Count the labels of a sample that are not ignored: pixels, or objects."""
    if kind == 'instances':
        return Counter(one.label for one in parts.instances or () if not one.ignored)
    if parts.label is None:
        return Counter()
    values, counts = np.unique(parts.label, return_counts=True)
    return Counter({value: count for value, count in zip(values.tolist(), counts.tolist()) if value != void})


def _measure_black(parts: SampleParts, void: Optional[int]) -> float:
    if parts.label is None or parts.image is None or parts.image.shape[:2] != parts.label.shape:
        return 0.0
    image = parts.image if parts.image.ndim == 3 else parts.image[..., None]
    return float(((image == 0).all(-1) & (parts.label != void)).mean())


def _measure_outside(parts: SampleParts) -> float:
    boxes = np.array([one.box[:4] for one in parts.instances or () if one.box is not None]).reshape(-1, 4)
    if not len(boxes) or parts.image is None or parts.image.ndim < 2:
        return 0.0
    height, width = parts.image.shape[:2]
    return float(((boxes[:, 2] > width + 1) | (boxes[:, 3] > height + 1) | (boxes[:, :2] < -1).any(1)).mean())


def measure_ignored(program: Program) -> Tuple[float, str]:
    """Return the share of ignored pixels, or of ignored objects, in the user's training data, and a phrase for it."""
    try:
        if program.kind == 'instances' and not program.has_label_map:
            dataset = program.build_dataset('train')
            flags = [
                bool(one.get('ignore_flag'))
                for leaf in find_innermost(dataset)
                for one in walk_objects(leaf, MAX_ANNOTATIONS)
            ]
            share = sum(flags) / max(1, len(flags))
            return share, f'{sum(flags):,} of {len(flags):,} objects of your data are ignored'
        readings = read_samples(program, 'train')
        share = float(np.mean([one.ignored for one in readings])) if readings else 0.0
        return share, f'{share:.2%} of the pixels are ignored in {len(readings)} loads of your data'
    except Exception:  # the data are missing
        return 0.0, 'your data were not read'


def measure_edges(image: np.ndarray, label: np.ndarray, void: int) -> float:
    """Return the mean gradient of an image (H, W) at the borders of a label map, as a multiple of that of all pixels.

    0 if the label map has fewer than 20 border pixels.
    """
    edges = np.zeros(label.shape, bool)
    edges[1:] |= label[1:] != label[:-1]
    edges[:, 1:] |= label[:, 1:] != label[:, :-1]
    edges &= label != void
    if edges.sum() < 20:
        return 0.0
    down, right = np.gradient(image)
    steep = np.abs(down) + np.abs(right)
    return float(steep[edges].mean() / (steep.mean() + 1e-9))


def has_shapes(image: np.ndarray) -> bool:
    """Return True if an image (H, W) has edges that stand out from its noise."""
    smooth = sum(
        image[1 + row : image.shape[0] - 1 + row, 1 + column : image.shape[1] - 1 + column]
        for row in _NEAR
        for column in _NEAR
    )
    down, right = np.gradient(smooth)
    steep = np.abs(down) + np.abs(right)
    return bool(np.percentile(steep, 99) > _SHAPES * np.median(steep))
