"""Everything that belongs to an instance, kept in line: boxes, labels, masks, flags, keypoints."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence

import numpy as np
import torch

#: What mmcv's and mmdet's loaders call the fields that have one element per instance.
KNOWN = (
    'gt_bboxes',
    'gt_bboxes_labels',
    'gt_masks',
    'gt_ignore_flags',
    'gt_keypoints',
    'gt_keypoints_visible',
    'gt_instances_ids',
)
#: The fields of mmdet3d's objects, and those of their boxes in the image.
IN_SPACE = ('gt_bboxes_3d', 'gt_labels_3d', 'attr_labels', 'depths', 'centers_2d')
IN_IMAGE = ('gt_bboxes', 'gt_bboxes_labels')


def check_lengths(results: Dict[str, Any], instances: int, source: Optional[str]) -> None:
    """Checks that a sample, not packed yet, has as many boxes, labels, masks, ... as instances.

    Raises:
        ValueError: A field of another length.
    """
    for key in KNOWN:
        value = results.get(key)
        if value is not None and len(value) != instances:
            raise ValueError(
                f'{source or "sample"}: {key} has {len(value)} elements, but there are {instances} instances. '
                f'A transform before the guard changed one without the other'
            )


def keys_of(results: Dict[str, Any], instances: int) -> List[str]:
    """The keys of a sample, not packed yet, that hold one element per instance."""
    img_shape = tuple(results.get('img_shape', ()))[:2]
    return [
        key for key, value in results.items() if key in KNOWN or _is_unknown_field(key, value, instances, img_shape)
    ]


def _is_unknown_field(key: str, value: Any, instances: int, img_shape: Sequence[int]) -> bool:
    """Whether a field that some other package put there has one element per instance."""
    if not key.startswith('gt_') or isinstance(value, (str, bytes, dict)) or not hasattr(value, '__len__'):
        return False
    shape = tuple(getattr(value, 'shape', (1,)))
    if not shape:
        return False  # a number in an array
    if key.endswith(('_map', '_seg')) or (len(shape) >= 2 and shape[:2] == tuple(img_shape)):
        return False  # a map of the image, which may happen to be as high as there are instances
    return len(value) == instances


def take(value: Any, index: np.ndarray) -> Any:
    """The elements at ``index`` (integers) of any per-instance field."""
    if isinstance(value, (list, tuple)):
        return type(value)(value[i] for i in index)
    if isinstance(value, torch.Tensor):
        return value[torch.from_numpy(index)]
    return value[index]


def concatenated(first: Any, second: Any) -> Any:
    """Two per-instance fields of the same kind, one behind the other."""
    if isinstance(first, torch.Tensor):
        return torch.cat([first, second])
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    if isinstance(first, (list, tuple)):
        return first + second
    return type(first).cat([first, second])


def taken(instances: Any, index: np.ndarray) -> Any:
    """``InstanceData`` of the instances at ``index``; its own indexing makes one slice per instance."""
    return _like(instances, {key: take(value, index) for key, value in instances.items()})


def appended(instances: Any, more: Any) -> Any:
    """``InstanceData`` with more instances; fields that only one of the two has are left out."""
    if not len(instances):
        return more
    fields = {key: concatenated(value, more[key]) for key, value in instances.items() if key in more}
    return _like(instances, fields)


def _like(instances: Any, fields: Dict[str, Any]) -> Any:
    made = type(instances)(metainfo=instances.metainfo)
    for key, value in fields.items():
        made.set_field(value, key)
    return made
