"""Statistics of loaded samples: labels before and after the pipeline, image values, boxes outside of the image."""

from __future__ import annotations

from collections import Counter
from typing import Any, List, NamedTuple, Optional, Tuple

import numpy as np
import torch

from mmguard.properties.datasets import seed_all, select_indices, walk_datasets, watch_steps
from mmguard.properties.program import Program, cache_result
from mmguard.properties.samples import SampleParts, read_parts

#: Maximum number of samples that are loaded.
LOADS = 16
#: Parts of the names of transforms that combine several images, or scale them without setting scale_factor.
_MIXING = ('Mosaic', 'MixUp', 'Affine', 'Expand')
#: Minimum ratio of the steepest to the median gradient of an image with shapes.
_SHAPES = 3.5


class SampleReading(NamedTuple):
    """Labels and values of one loaded sample."""

    before: Counter  # label -> pixels or boxes, right after the labels were loaded
    after: Counter  # the same in the packed sample, without ignored objects
    ignored: float  # share of ignored pixels in the packed sample
    black: Tuple[float, float]  # share of pixels whose value is 0 and whose label is valid, before and after
    outside: float  # share of boxes that reach out of the image by more than a pixel, before
    values: Tuple[float, float]  # smallest and largest value of the image that reaches the preprocessor
    scale: float  # factor by which the pipeline enlarges the image; 0 if unknown


@cache_result
def read_samples(program: Program, split: str) -> List[SampleReading]:
    """Read samples that are spread over a data set; leave out samples that fail or are dropped."""
    try:
        dataset = program.build_dataset(split)
    except Exception:  # reported with the data
        return []
    found, failures = [], 0
    void = program.ignore_index if program.has_label_map else None
    for number, index in enumerate(select_indices(len(dataset), min(LOADS, 2 * program.samples))):
        first: List[SampleParts] = []
        scales: List[float] = []

        def on_step(step: Any, results: Any, first: Any = first, scales: Any = scales) -> Any:
            results = step(results)
            scales.append(_get_scale(step, results))
            parts = read_parts(results) if isinstance(results, dict) and not first else None
            if parts is not None and (parts.label is not None or parts.instances is not None):
                label = None if parts.label is None else np.array(parts.label)
                first.append(parts._replace(image=np.array(parts.image), label=label))
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
        inputs = sample.get('inputs')
        if first and isinstance(inputs, torch.Tensor) and last.image is not None:
            reading = SampleReading(
                count_labels(first[0], program.kind, void),
                count_labels(last, program.kind, void),
                float((last.label == void).mean()) if last.label is not None and last.label.size else 0.0,
                (_measure_black(first[0], void), _measure_black(last, void)),
                _measure_outside(first[0]),
                (float(inputs.min()), float(inputs.max())),
                float(np.prod(scales)),
            )
            found.append(reading)
    return found


def _get_scale(step: Any, results: Any) -> float:
    """Return the factor by which a step enlarges the image; 0 if it combines images at unknown scales."""
    name = type(step).__name__
    if any(word in name for word in _MIXING):
        return 0.0
    if 'Resize' not in name or not isinstance(results, dict):
        return 1.0
    scale = np.atleast_1d(results.get('scale_factor', 0)).astype(float)
    return float(np.sqrt(scale[0] * scale[-1]))


def count_labels(parts: SampleParts, kind: str, void: Optional[int]) -> Counter:
    """Count the pixels or objects of each label in a sample, except ignored ones."""
    if kind == 'instances':
        return Counter(one.label for one in parts.instances or () if not one.ignored)
    if parts.label is None:
        return Counter()
    values, counts = np.unique(parts.label, return_counts=True)
    return Counter({value: count for value, count in zip(values.tolist(), counts.tolist()) if value != void})


def _measure_black(parts: SampleParts, void: Optional[int]) -> float:
    if parts.label is None or parts.image is None or parts.image.shape[:2] != parts.label.shape:
        return 0.0
    image = np.atleast_3d(parts.image)
    return float(((image == 0).all(-1) & (parts.label != void)).mean())


def _measure_outside(parts: SampleParts) -> float:
    boxes = np.array([one.box[:4] for one in parts.instances or () if one.box is not None]).reshape(-1, 4)
    if not len(boxes) or parts.image is None or parts.image.ndim < 2:
        return 0.0
    height, width = parts.image.shape[:2]
    return float(((boxes[:, 2] > width + 1) | (boxes[:, 3] > height + 1) | (boxes[:, :2] < -1).any(1)).mean())


def measure_edges(image: np.ndarray, label: np.ndarray, void: int) -> float:
    """Return an image's (H, W) mean gradient at label borders, relative to all pixels; 0 for under 20 border pixels."""
    edges = np.zeros(label.shape, bool)
    edges[1:] |= label[1:] != label[:-1]
    edges[:, 1:] |= label[:, 1:] != label[:, :-1]
    edges &= label != void
    if edges.sum() < 20:
        return 0.0
    steep = np.abs(np.gradient(image)).sum(0)
    return float(steep[edges].mean() / (steep.mean() + 1e-9))


def has_shapes(image: np.ndarray) -> bool:
    """Return True if an image (H, W) has edges that stand out from its noise."""
    smooth = torch.nn.functional.avg_pool2d(torch.from_numpy(image)[None], 3, 1)[0].numpy()
    steep = np.abs(np.gradient(smooth)).sum(0)
    return bool(np.percentile(steep, 99) > _SHAPES * np.median(steep))
