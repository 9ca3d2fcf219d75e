"""Functions that check and select per-instance fields of a detector's targets, and find faults of boxes."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Set, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.functional.validate import format_shape
from mmguard.labels.instances import NO_AREA, NOT_FINITE, OUTSIDE
from mmguard.text import shorten

Target = Mapping[str, Any]

#: Fields with one element per instance that losses index together: they must have the same length.
INDEXED = ('boxes', 'masks', 'keypoints')
#: Per-instance fields only for evaluation. MLPerf's data set filters boxes and labels, but not these.
EVALUATED = ('area', 'iscrowd')
BOX_FORMATS = ('xyxy', 'xywh', 'cxcywh')


def check_targets(
    targets: Sequence[Target], label_key: str, box_format: Optional[str], instance_keys: Optional[Sequence[str]]
) -> None:
    """Check types, shapes and dtypes of targets, without reading a value, so that no device is synchronized.

    Raises:
        TypeError: ``targets`` is not a list of dicts of tensors, or labels are not integers.
        ValueError: A shape does not fit, a field is missing, or ``box_format`` is unknown.
    """
    if box_format is not None and box_format not in BOX_FORMATS:
        raise ValueError(
            f'box_format must be one of {", ".join(map(repr, BOX_FORMATS))} or None, got {shorten(box_format)}'
        )
    if isinstance(instance_keys, str):
        raise TypeError(
            f'instance_keys must be a sequence of names, got {shorten(instance_keys)}: write '
            f'({shorten(instance_keys)},)'
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
            raise ValueError(f"only one of targets[0] and targets[{place}] has 'boxes'")
        if 'boxes' in target and target['boxes'].shape[1] != targets[0]['boxes'].shape[1]:
            both = ' and '.join(format_shape(one['boxes']) for one in (targets[0], target))
            raise ValueError(f"'boxes' of targets[0] and targets[{place}] need equally many columns, got shapes {both}")
        for key in (*INDEXED, *(instance_keys or ())):
            if key in target and get_length(target[key]) != len(target[label_key]):
                raise ValueError(
                    f'targets[{place}][{key!r}] has {get_length(target[key])} elements, but there are '
                    f'{len(target[label_key])} labels: a transform or filter changed only one of the two'
                )


def _check_labels(target: Target, label_key: str, place: int) -> None:
    name = f'targets[{place}][{label_key!r}]'
    if label_key not in target:
        keys = ', '.join(map(repr, target)) or 'none'
        raise ValueError(
            f'targets[{place}] has no {label_key!r}, its keys are {keys}: pass the key of the labels as label_key'
        )
    labels = target[label_key]
    if not isinstance(labels, Tensor):
        raise TypeError(f'{name} must be a tensor, got {type(labels).__name__}: write torch.as_tensor(labels)')
    if labels.dim() != 1:
        hint = '. One-hot labels? Convert with labels.argmax(1)' if labels.dim() == 2 else ''
        raise ValueError(f'{name} has shape {format_shape(labels)}, expected (num_instances,){hint}')
    if labels.is_floating_point() or labels.dtype.is_complex:
        hint = 'convert with labels.long()' if len(labels) else 'if empty, write torch.zeros(0, dtype=torch.int64)'
        raise TypeError(f'{name} are {labels.dtype}, expected integer class indices: {hint}')


def _check_boxes(boxes: Any, place: int, box_format: Optional[str]) -> None:
    name = f"targets[{place}]['boxes']"
    if not isinstance(boxes, Tensor):
        raise TypeError(f'{name} must be a tensor, got {type(boxes).__name__}: write torch.as_tensor(boxes)')
    width = '4' if box_format else 'D'
    if boxes.dim() != 2 or (box_format and boxes.shape[1] != 4):
        hint = '' if boxes.numel() else ': if empty, write torch.zeros((0, 4))'
        raise ValueError(f'{name} has shape {format_shape(boxes)}, expected (num_instances, {width}){hint}')


def find_instance_keys(targets: Sequence[Target], label_key: str, instance_keys: Optional[Sequence[str]]) -> Set[str]:
    """Return the keys of per-instance fields: the known keys, and ``instance_keys`` or else fields of fitting length.

    Without ``instance_keys``, any other field counts if it has one element per instance in every image of the batch,
    unless it is called ``image_id`` or its name ends with size, shape or scale.
    """
    keys = {label_key, *INDEXED, *EVALUATED}
    if instance_keys is not None:
        return keys | set(instance_keys)
    for key in set().union(*targets) - keys:
        if key == 'image_id' or str(key).endswith(('size', 'shape', 'scale')):
            continue
        if all(get_length(t[key]) == len(t[label_key]) for t in targets if key in t):
            keys.add(key)
    return keys


def get_length(value: Any) -> Optional[int]:
    """Return the length of a field, or ``None`` for a number, a string or a dict."""
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


#: Box formats in pixels, which can be compared with the size of an image.
IN_PIXELS = ('xyxy', 'xywh')


def read_on_host(
    targets: Sequence[Target],
    label_key: str,
    check_boxes: bool,
    box_format: Optional[str],
    image_sizes: Optional[List[Tuple[int, int]]] = None,
) -> Tuple[np.ndarray, np.ndarray]:
    """Return all labels, and the fault of each box as an index in ``BOX_REASONS`` (0 if valid): int64, (N,) each.

    ``image_sizes`` are (height, width) of each image in pixels. Without them, no box counts as outside of its image.
    """
    if not targets:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # Values beyond int64 turn negative: invalid either way.
    labels = torch.cat([target[label_key].long() for target in targets])
    if not check_boxes or 'boxes' not in targets[0]:
        found = labels.cpu().numpy()
        return found, np.zeros_like(found)
    boxes = torch.cat([target['boxes'].detach() for target in targets])
    limits = None
    if image_sizes is not None and box_format in IN_PIXELS:
        counts = torch.tensor([len(target[label_key]) for target in targets])
        limits = torch.tensor(image_sizes).flip(1).repeat_interleave(counts, 0).to(boxes.device)
    faults = find_box_faults(boxes, box_format, limits)
    labels, faults = torch.stack([labels, faults.to(labels.device)]).cpu().unbind()
    return labels.numpy(), faults.numpy()


def find_box_faults(boxes: Tensor, box_format: Optional[str], limits: Optional[Tensor] = None) -> Tensor:
    """Return one fault per box as an index in ``BOX_REASONS``, or 0 if it is valid: int64, (N,), on the boxes' device.

    ``limits`` (N, 2) are (width, height) of each box's image. Without ``box_format``, only non-finite boxes are faulty.

    Example:
        >>> find_box_faults(torch.tensor([[0.0, 0.0, 5.0, 0.0], [8.0, 0.0, 9.0, 1.0]]), 'xyxy', torch.tensor([[8,
        ...     8]] * 2))
        tensor([2, 3])
    """
    faults = torch.zeros(len(boxes), dtype=torch.int64, device=boxes.device)
    if box_format is not None:
        first, second = boxes[:, :2], boxes[:, 2:]
        if limits is not None:
            ends = second if box_format == 'xyxy' else first + second
            faults = faults.masked_fill(((ends <= 0) | (first >= limits)).any(dim=1), OUTSIDE)
        no_area = (second <= first) if box_format == 'xyxy' else (second <= 0)
        faults = faults.masked_fill(no_area.any(dim=1), NO_AREA)
    return faults.masked_fill(~boxes.isfinite().all(dim=1), NOT_FINITE)
