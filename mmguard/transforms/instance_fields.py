"""Fields with one element per instance (boxes, labels, masks, flags, keypoints), and faults of boxes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch

from mmguard.labels.instances import FEW_INSTANCES, find_corner_faults

#: Keys of mmcv's and mmdet's loaders with one element per instance.
INSTANCE_KEYS = (
    'gt_bboxes',
    'gt_bboxes_labels',
    'gt_masks',
    'gt_ignore_flags',
    'gt_keypoints',
    'gt_keypoints_visible',
    'gt_instances_ids',
)


def check_lengths(results: Dict[str, Any], instances: int, source: Optional[str]) -> None:
    """Check that an unpacked sample has as many boxes, labels, masks, ... as instances.

    Raises:
        ValueError: A field of a different length.
    """
    for key in INSTANCE_KEYS:
        value = results.get(key)
        if value is not None and len(value) != instances:
            raise ValueError(
                f'{source or "sample"}: {key} has {len(value)} elements, but there are {instances} instances. '
                f'A transform before the guard changed one without the other'
            )


def find_keys(results: Dict[str, Any], instances: int) -> List[str]:
    """Return the keys of an unpacked sample with one element per instance."""
    img_shape = tuple(results.get('img_shape', ()))[:2]
    return [
        key
        for key, value in results.items()
        if key in INSTANCE_KEYS or _is_unknown_field(key, value, instances, img_shape)
    ]


def _is_unknown_field(key: str, value: Any, instances: int, img_shape: Sequence[int]) -> bool:
    """Return True if a field of another package has one element per instance."""
    if not key.startswith('gt_') or isinstance(value, (str, bytes, dict)) or not hasattr(value, '__len__'):
        return False
    shape = tuple(getattr(value, 'shape', (1,)))
    if not shape:
        return False  # a number in an array
    if key.endswith(('_map', '_seg')) or (len(shape) >= 2 and shape[:2] == tuple(img_shape)):
        return False  # a map of the image, whose height may equal the number of instances
    return len(value) == instances


def take(value: Any, index: np.ndarray) -> Any:
    """Return the elements at ``index`` (integers) of any per-instance field."""
    if isinstance(value, (list, tuple)):
        return type(value)(value[i] for i in index)
    if isinstance(value, torch.Tensor):
        return value[torch.from_numpy(index)]
    return value[index]


def concatenate(first: Any, second: Any) -> Any:
    """Join two per-instance fields of the same kind."""
    if isinstance(first, torch.Tensor):
        return torch.cat([first, second])
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    if isinstance(first, (list, tuple)):
        return first + second
    return type(first).cat([first, second])


def take_instances(instances: Any, index: np.ndarray) -> Any:
    """Return ``InstanceData`` of the instances at ``index``; its own indexing makes one slice per instance."""
    return _make_like(instances, {key: take(value, index) for key, value in instances.items()})


def append_instances(instances: Any, added: Any) -> Any:
    """Return ``InstanceData`` with more instances; fields that only one of the two has are left out."""
    if not len(instances):
        return added
    fields = {key: concatenate(value, added[key]) for key, value in instances.items() if key in added}
    return _make_like(instances, fields)


def _make_like(instances: Any, fields: Dict[str, Any]) -> Any:
    made = type(instances)(metainfo=instances.metainfo)
    for key, value in fields.items():
        made.set_field(value, key)
    return made


_INF = float('inf')


def find_box_faults(boxes: Any, img_shape: Tuple[float, float]) -> Optional[np.ndarray]:
    """Find the fault of each box.

    Args:
        boxes (BaseBoxes, Tensor or np.ndarray): N boxes; plain arrays hold (x1, y1, x2, y2), in pixels.
        img_shape (tuple[float, float]): Height and width; infinite: no box counts as outside.

    Returns:
        np.ndarray, optional: int (N,), index of the first fault in ``BOX_REASONS`` (0: no fault); ``None`` if no
        box has a fault, or if they have a type of mmdet that is not HorizontalBoxes.
    """
    if not len(boxes):
        return None
    corners = _get_corners(boxes)
    faults = None if corners is None else find_corner_faults(np.asarray(corners), img_shape)
    return faults if faults is not None and faults.any() else None


def are_few_and_good(boxes: Any, img_shape: Tuple[float, float]) -> bool:
    """Return True if a fast look at the corners shows that no box has a fault."""
    corners = _get_corners(boxes)
    if corners is None or len(corners) > FEW_INSTANCES:
        return False
    height, width = img_shape
    for left, top, right, bottom in corners.tolist():
        if not (-_INF < left < right < _INF and -_INF < top < bottom < _INF):  # NaN is not smaller than anything
            return False
        if right <= 0 or bottom <= 0 or left >= width or top >= height:
            return False
    return True


def _get_corners(boxes: Any) -> Any:
    """Return (N, 4) corners of horizontal boxes, without a copy; ``None`` for any other type of box."""
    if hasattr(boxes, 'tensor'):
        box_type: Any = type(boxes)
        return boxes.tensor if _is_horizontal(box_type) else None
    return boxes if isinstance(boxes, torch.Tensor) else np.asarray(boxes)


@lru_cache(maxsize=None)
def _is_horizontal(box_type: Any) -> bool:
    from mmdet.structures.bbox import HorizontalBoxes  # not installed if boxes are plain arrays

    return issubclass(box_type, HorizontalBoxes)
