"""Guards for targets of detectors outside of OpenMMLab: one dict per image, as in torchvision, MLPerf and DETR."""

from __future__ import annotations

import warnings
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple

import numpy as np
import torch
from torch import Tensor

from mmguard.detection.fields import Target, check_targets, find_instance_keys, get_length, read_on_host, take
from mmguard.labels.instances import InstanceRule, SanitizedInstances, describe_reasons
from mmguard.labels.rules import LabelMap
from mmguard.labels.tally import Tally
from mmguard.text import quantity, visible_name

_ADVICE = (
    'Training continues, but the annotations are wrong: run `mmguard scan` on the annotation file to find the cause. '
    'return_tally=True returns the counts of every image instead of this warning'
)
#: Number of batches with an invalid instance so far.
_offending_batches = 0


class TargetRule(InstanceRule):
    """Rule for targets that are dicts. The losses for such targets do not support ignored instances."""

    choices = ('drop', 'clip', 'raise')
    valid_box = 'finite coordinates and an area'

    def __init__(self, num_classes: int, on_invalid: str, label_map: Optional[LabelMap], min_label: int) -> None:
        if on_invalid == 'ignore':
            raise ValueError(
                "on_invalid='ignore' needs a loss that supports ignored instances, unlike the losses of "
                "torchvision and DETR: write 'drop', and use guard_batch() to leave out images without a valid instance"
            )
        super().__init__(num_classes, on_invalid, label_map, min_label)


def guard_targets(
    targets: Sequence[Target],
    num_classes: int,
    on_invalid: str = 'drop',
    *,
    label_map: Optional[LabelMap] = None,
    min_label: int = 0,
    label_key: str = 'labels',
    check_boxes: bool = True,
    box_format: Optional[str] = None,
    instance_keys: Optional[Sequence[str]] = None,
    sources: Optional[Sequence[str]] = None,
    return_tally: bool = False,
) -> Any:
    r"""Sanitize a detector's targets: remove instances whose label is not a class, or whose box is unusable.

    All fields of an instance stay aligned: labels, boxes, masks, keypoints, area, iscrowd and your own fields. Fields
    of the image (``image_id``, ``orig_size``, ``size``) do not change. An image may end up without any instance: it is
    then trained as background. :func:`guard_batch` leaves such images out.

    Removing instances changes shapes, so the labels are read on the host, once per batch. Call this before
    ``.to(device)``; with CUDA tensors it works, too, but waits for the device. Your dicts and tensors are never
    modified, and nothing is copied if all labels and boxes are valid.

    Args:
        targets (list[dict]): One per image: ``'labels'`` (N,), integers; optionally ``'boxes'`` (N, 4), ``'masks'``
            (N, H, W), ``'keypoints'`` (N, K, 3), ``'area'`` and ``'iscrowd'`` (N,), and others. N may be 0.
        num_classes (int): The num_classes of the model. Valid labels are ``[min_label, num_classes)``.
            torchvision's ``num_classes`` counts the background, DETR's does not.
        on_invalid (str): ``'drop'`` removes the instance; ``'clip'`` clamps its label to a class (an unusable box is
            still dropped); ``'raise'`` raises ``LabelGuardError``.
        label_map (dict[int, int], optional): Raw label -> class, applied first.
        min_label (int): 1 for torchvision's Faster R-CNN, Mask R-CNN, Keypoint R-CNN and SSD, which keep 0 for the
            background and silently train a label 0 as background; 0 for RetinaNet, FCOS and DETR.
        label_key (str): The field of the labels: ``'class_labels'`` in Hugging Face's detectors.
        check_boxes (bool): Remove instances with unusable boxes.
        box_format (str, optional): ``'xyxy'`` (torchvision), ``'xywh'`` (COCO) or ``'cxcywh'`` (DETR), in pixels or
            normalized. With a format, boxes without an area are unusable; with ``None``, only non-finite boxes.
        instance_keys (Sequence[str], optional): Your own fields with one element per instance. Default: the fields
            that have as many elements as instances in every image of the batch.
        sources (Sequence[str], optional): File names for tallies and messages. Default: ``image_id``, if present.
        return_tally (bool): Return the counts, too. Otherwise, a warning reports the 1st, 2nd, 4th, 8th, ... batch
            with invalid instances.

    Returns:
        list[dict]: The targets; ``targets`` itself if all is valid. With ``return_tally``, a tuple: targets, and a list
        with one :class:`~mmguard.labels.tally.Tally` per image.

    Raises:
        TypeError: ``targets`` is not a list of dicts, or labels are not integers.
        ValueError: Fields differ in length, a shape is wrong, or an option is unknown.
        LabelGuardError: A label or box is invalid, and ``on_invalid`` is ``'raise'``.

    Example:
        >>> boxes = torch.tensor([[0.0, 0.0, 9.0, 9.0], [1.0, 1.0, 5.0, 5.0]])
        >>> targets = [{'boxes': boxes, 'labels': torch.tensor([600, 7]), 'image_id': torch.tensor([42])}]
        >>> targets, tallies = guard_targets(targets, num_classes=264, box_format='xyxy', return_tally=True)
        >>> targets[0]['labels'].tolist(), targets[0]['boxes'].tolist()
        ([7], [[1.0, 1.0, 5.0, 5.0]])
        >>> tallies[0].source, tallies[0].values
        ('image_id 42', {600: 1})
    """
    rule = TargetRule(num_classes, on_invalid, label_map, min_label)
    check_targets(targets, label_key, box_format, instance_keys)
    found = read_on_host(targets, label_key, check_boxes, box_format)
    guarded, tallies = _guard(targets, rule, found, label_key, instance_keys, sources, return_tally)
    return (guarded, tallies) if return_tally else guarded


def guard_batch(
    images: Any,
    targets: Sequence[Target],
    num_classes: int,
    on_invalid: str = 'drop',
    *,
    label_map: Optional[LabelMap] = None,
    min_label: int = 0,
    label_key: str = 'labels',
    check_boxes: bool = True,
    box_format: Optional[str] = None,
    instance_keys: Optional[Sequence[str]] = None,
    sources: Optional[Sequence[str]] = None,
    return_tally: bool = False,
) -> Any:
    """Sanitize targets as :func:`guard_targets` does, and drop images that lose all of their instances.

    Such an image has no valid label, so its objects would be trained as background. A loss that divides
    by the number of images (RetinaNet's in torchvision and MLPerf) then divides by the remaining ones. Images that
    had no instance before are kept: they are annotated as background.

    If no image would remain, all are kept without instances, because a rank must have something to run. The size of
    the batch may change: with static shapes (CUDA graphs) use :func:`guard_targets`.

    Boxes in pixels (``'xyxy'``, ``'xywh'``) outside of their image are removed, too. Such a box overlaps no anchor, and
    torchvision's matcher, which assigns to every box its best anchors, would assign all anchors to this box.

    Args:
        images (list[Tensor] or Tensor): (C, H, W) each, or stacked, (B, C, H, W).
        targets (list[dict]), others: See :func:`guard_targets`.

    Returns:
        tuple: images and targets, the same objects if all is valid. With ``return_tally``, the third item is a list
        with one :class:`~mmguard.labels.tally.Tally` per input image.

    Raises:
        TypeError, ValueError, LabelGuardError: As :func:`guard_targets`, or images and targets differ in number.

    Example:
        >>> images = [torch.zeros(3, 8, 8), torch.ones(3, 8, 8)]
        >>> targets = [{'labels': torch.tensor([600])}, {'labels': torch.tensor([600, 7])}]
        >>> images, targets, tallies = guard_batch(images, targets, num_classes=264, return_tally=True)
        >>> len(images), targets[0]['labels'].tolist(), [tally.skipped for tally in tallies]
        (1, [7], [1, 1])
    """
    if not isinstance(images, (list, tuple, Tensor)):
        raise TypeError(
            f'images must be a list of tensors or one tensor, got {type(images).__name__}: call guard_batch() before '
            f'images are collated, or call guard_targets(), which takes only targets'
        )
    rule = TargetRule(num_classes, on_invalid, label_map, min_label)
    check_targets(targets, label_key, box_format, instance_keys)
    if len(images) != len(targets):
        raise ValueError(f'there are {len(images)} images, but {len(targets)} targets')
    found = read_on_host(targets, label_key, check_boxes, box_format, _get_sizes(images))
    guarded, tallies = _guard(targets, rule, found, label_key, instance_keys, sources, return_tally)
    stays = [bool(len(new[label_key])) or not len(old[label_key]) for old, new in zip(targets, guarded)]
    if any(stays) and not all(stays):
        index = np.flatnonzero(stays)
        images, guarded = take(images, index), take(guarded, index)
    return (images, guarded, tallies) if return_tally else (images, guarded)


def _guard(
    targets: Sequence[Target],
    rule: TargetRule,
    found: Tuple[np.ndarray, np.ndarray],
    label_key: str,
    instance_keys: Optional[Sequence[str]],
    sources: Optional[Sequence[str]],
    return_tally: bool,
) -> Tuple[Sequence[Target], List[Tally]]:
    """Return the targets (the input if unchanged) and one tally per image, or [] if none is needed and all is valid."""
    if sources is not None and len(sources) != len(targets):
        raise ValueError(f'there are {len(sources)} sources, but {len(targets)} targets')
    labels, faults = found
    valid = (labels >= rule.min_label) & (labels < rule.num_classes) & (faults == 0)
    all_valid = not rule.label_map and bool(valid.all())
    if all_valid and not return_tally:
        return targets, []
    counts = [len(target[label_key]) for target in targets]
    names = [_get_source(target) for target in targets] if sources is None else list(sources)
    if all_valid:
        return targets, [Tally(count, source=name) for count, name in zip(counts, names)]
    keys = find_instance_keys(targets, label_key, instance_keys)
    guarded: List[Target] = []
    tallies: List[Tally] = []
    ends = np.cumsum(counts).tolist()
    for place, (target, count, end, name) in enumerate(zip(targets, counts, ends, names)):
        here = slice(end - count, end)
        if not rule.label_map and valid[here].all():
            guarded.append(target)
            tallies.append(Tally(count, source=name))
            continue
        sanitized = _sanitize(rule, labels[here], faults[here], name, place)
        guarded.append(_rebuild(target, sanitized, rule, label_key, keys))
        tallies.append(sanitized.tally)
    if not return_tally and any(tally.reasons for tally in tallies):  # what label_map changes is intended
        warn_of(tallies, stacklevel=3)
    same = all(new is old for new, old in zip(guarded, targets))
    return targets if same else guarded, tallies


def warn_of(tallies: List[Tally], stacklevel: int) -> None:
    """Count a batch with invalid instances, and warn if it is the 1st, 2nd, 4th, 8th, ... of this process."""
    global _offending_batches
    _offending_batches += 1
    if _offending_batches & (_offending_batches - 1):
        return
    offending = [tally for tally in tallies if tally]
    total = sum(tallies, Tally())
    amounts = [f'{verb} {n:,}' for n, verb in ((total.skipped, 'left out'), (total.remapped, 'remapped')) if n]
    reasons = describe_reasons(total)
    first = f', first: {visible_name(str(offending[0].source))}' if offending[0].source else ''
    warnings.warn(
        f'mmguard: {" and ".join(amounts)} of {total.total:,} instances{f" ({reasons})" if reasons else ""} in '
        f'{len(offending)} of {len(tallies)} images{first}. '
        f'{quantity(_offending_batches, "such batch", "such batches")} so far. {_ADVICE}',
        stacklevel=stacklevel + 1,
    )


def _get_sizes(images: Any) -> Optional[List[Tuple[int, int]]]:
    """Return (height, width) of each image, or ``None`` if the layout of an image may not be (C, H, W)."""
    if not all(isinstance(image, Tensor) and image.dim() == 3 and image.shape[2] > 4 for image in images):
        return None
    return [(image.shape[1], image.shape[2]) for image in images]


def _get_source(target: Target) -> Optional[str]:
    image_id = target.get('image_id')
    if isinstance(image_id, Tensor):
        image_id = image_id.tolist() if image_id.numel() == 1 else None
    if isinstance(image_id, list):
        image_id = image_id[0] if len(image_id) == 1 else None
    return None if image_id is None else f'image_id {image_id}'


def _sanitize(
    rule: TargetRule, labels: np.ndarray, faults: np.ndarray, source: Optional[str], place: int
) -> SanitizedInstances:
    where = source or f'targets[{place}]'  # only for the message; a tally needs a lasting name
    sanitized = rule.sanitize(labels, None, faults if faults.any() else None, where)
    sanitized.tally.source = source
    return sanitized


def _rebuild(target: Target, sanitized: SanitizedInstances, rule: TargetRule, label_key: str, keys: Set[str]) -> Target:
    if not sanitized.tally.changed:
        return target
    rebuilt: Dict[str, Any] = dict(target)
    labels = target[label_key]
    if sanitized.tally.remapped or sanitized.tally.mapped:
        fits = labels.dtype != torch.bool and torch.iinfo(labels.dtype).max >= rule.num_classes - 1
        rebuilt[label_key] = torch.from_numpy(sanitized.labels).to(labels.device, labels.dtype if fits else torch.int64)
    if sanitized.dropped is not None:
        index = np.flatnonzero(~sanitized.dropped)
        for key in keys & rebuilt.keys():
            # An 'area' of another length was wrong before, and is not changed, because no loss reads it.
            if get_length(rebuilt[key]) == len(labels):
                rebuilt[key] = take(rebuilt[key], index)
    return rebuilt
