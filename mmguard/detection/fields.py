"""Fields of a detector's target: which of them have one element per instance, and whether they match."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Set

import numpy as np
import torch
from torch import Tensor

from mmguard.functional.checks import shape_of
from mmguard.text.words import short

Target = Mapping[str, Any]

#: Fields with one element per instance that losses index together: they must have the same length.
INDEXED = ('boxes', 'masks', 'keypoints')
#: Per-instance fields only for evaluation. MLPerf's data set filters boxes and labels, but not these.
EVALUATED = ('area', 'iscrowd')
BOX_FORMATS = ('xyxy', 'xywh', 'cxcywh')


def check_targets(
    targets: Sequence[Target], label_key: str, box_format: Optional[str], instance_keys: Optional[Sequence[str]]
) -> None:
    """Check types, shapes and dtypes; reads no value, so it does not synchronise.

    Raises:
        TypeError: Targets that are not a list of dicts of tensors, or labels that are not integers.
        ValueError: A shape that does not fit, a missing field, or an unknown ``box_format``.
    """
    if box_format is not None and box_format not in BOX_FORMATS:
        raise ValueError(
            f'box_format must be one of {", ".join(map(repr, BOX_FORMATS))} or None, got {short(box_format)}'
        )
    if isinstance(instance_keys, str):
        raise TypeError(
            f'instance_keys must be a sequence of names, got {short(instance_keys)}: write ({short(instance_keys)},)'
        )
    if not isinstance(targets, (list, tuple)) or not all(isinstance(target, Mapping) for target in targets):
        got = type(targets).__name__
        if isinstance(targets, (list, tuple)):
            got += f' of {", ".join(sorted({type(target).__name__ for target in targets}))}'
        raise TypeError(f"targets must be a list of dicts, {{'boxes': ..., 'labels': ...}} per image, got {got}")
    for place, target in enumerate(targets):
        _check_labels(target, label_key, place)
        if 'boxes' in target:
            _check_boxes(target['boxes'], place, box_format)
        if ('boxes' in target) != ('boxes' in targets[0]):
            raise ValueError(f"of targets[0] and targets[{place}] only one has 'boxes'")
        if 'boxes' in target and target['boxes'].shape[1] != targets[0]['boxes'].shape[1]:
            both = ' and '.join(shape_of(one['boxes']) for one in (targets[0], target))
            raise ValueError(f"'boxes' of targets[0] and targets[{place}] have shapes {both}: different boxes?")
        for key in (*INDEXED, *(instance_keys or ())):
            if key in target and length_of(target[key]) != len(target[label_key]):
                raise ValueError(
                    f'targets[{place}][{key!r}] has {length_of(target[key])} elements, but there are '
                    f'{len(target[label_key])} labels: a transform or filter changed one without the other'
                )


def _check_labels(target: Target, label_key: str, place: int) -> None:
    name = f'targets[{place}][{label_key!r}]'
    if label_key not in target:
        keys = ', '.join(map(repr, target)) or 'none'
        raise ValueError(
            f'targets[{place}] has no {label_key!r}, its keys are {keys}: pass the right one, label_key=...'
        )
    labels = target[label_key]
    if not isinstance(labels, Tensor):
        raise TypeError(f'{name} must be a tensor, got {type(labels).__name__}: write torch.as_tensor(labels)')
    if labels.dim() != 1:
        hint = '. One-hot labels? Convert with labels.argmax(1)' if labels.dim() == 2 else ''
        raise ValueError(f'{name} has shape {shape_of(labels)}, expected (num_instances,){hint}')
    if labels.is_floating_point() or labels.dtype.is_complex:
        hint = (
            'convert with labels.long()' if len(labels) else 'for no instance, write torch.zeros(0, dtype=torch.int64)'
        )
        raise TypeError(f'{name} are {labels.dtype}, expected integer class indices: {hint}')


def _check_boxes(boxes: Any, place: int, box_format: Optional[str]) -> None:
    name = f"targets[{place}]['boxes']"
    if not isinstance(boxes, Tensor):
        raise TypeError(f'{name} must be a tensor, got {type(boxes).__name__}: write torch.as_tensor(boxes)')
    width = '4' if box_format else 'D'
    if boxes.dim() != 2 or (box_format and boxes.shape[1] != 4):
        hint = '' if boxes.numel() else ': for no instance, write torch.zeros((0, 4))'
        raise ValueError(f'{name} has shape {shape_of(boxes)}, expected (num_instances, {width}){hint}')


def per_instance_keys(targets: Sequence[Target], label_key: str, instance_keys: Optional[Sequence[str]]) -> Set[str]:
    """Return the fields to keep in line: the named ones, or else the known ones and those that look like it.

    Without names, an unknown field belongs to the instances if it has, in every image of the batch, as many
    elements as the image has instances.
    """
    keys = {label_key, *INDEXED, *EVALUATED}
    if instance_keys is not None:
        return keys | set(instance_keys)
    for key in set().union(*targets) - keys:
        if key == 'image_id' or str(key).endswith(('size', 'shape', 'scale')):
            continue
        if all(length_of(t[key]) == len(t[label_key]) for t in targets if key in t):
            keys.add(key)
    return keys


def length_of(value: Any) -> Optional[int]:
    """Return the length of a field; ``None`` for a number, a text or a dict."""
    if isinstance(value, (str, bytes, Mapping)) or not (hasattr(value, '__len__') and hasattr(value, '__getitem__')):
        return None
    if isinstance(value, (Tensor, np.ndarray)) and value.ndim == 0:
        return None
    return len(value)


def take(value: Any, index: np.ndarray) -> Any:
    """Return the elements at ``index`` (int64) of a per-instance field; a tensor stays on its device."""
    if isinstance(value, Tensor):
        return value[torch.from_numpy(index).to(value.device)]
    if isinstance(value, (list, tuple)):
        taken: List[Any] = [value[i] for i in index.tolist()]
        return taken if isinstance(value, list) else tuple(taken)
    return value[index]
