"""Transform that guards instances: boxes, labels and masks."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np
import torch
from mmcv.transforms import BaseTransform

from mmguard.labels.instances import FEW_INSTANCES, InstanceRule, SanitizedInstances, find_corner_faults
from mmguard.labels.rules import LabelMap
from mmguard.labels.tally import (
    LABEL_GUARD,
    Tally,
    adapt_rule,
    find_instances,
    get_file,
    leave_in_results,
    leave_in_sample,
)
from mmguard.log.messages import warn_unreported

#: A set, because ``==`` between a dtype of numpy and a dtype of torch raises an error.
INT64 = {torch.int64, np.dtype(np.int64)}
_INF = float('inf')


class GuardInstanceLabels(BaseTransform):
    """Check and sanitize the instances of an image, before or after PackDetInputs.

    Right after PackDetInputs, the guard sees what the loss will see, and its report always reaches the hook. Before
    PackDetInputs, the report does so only if ``meta_keys`` of PackDetInputs has ``'label_guard'``. Put the guard
    after transforms that mix several images (Mosaic, MixUp, CopyPaste), because they drop the reports of the mixed-in
    images. All fields of an instance stay aligned, labels become int64, and an image that keeps no instance stays
    usable. Panoptic samples need GuardSegLabels as well.

    Boxes keep their type; only HorizontalBoxes and plain arrays are checked.

    Required keys: ``gt_bboxes_labels`` or ``gt_bboxes``, or ``data_samples`` with ``gt_instances``. Without these
    keys, as in a test pipeline, nothing happens. Added key: ``label_guard``.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)``. mmdet's background, ``num_classes``, is not valid: an
            instance with that label would be trained as background.
        on_invalid (str): Treatment of an instance with an invalid label: ``'ignore'`` (default) moves it to the
            ignored instances (assigners with ``ignore_iof_thr`` > 0 then train its region neither as an object nor as
            background); ``'drop'`` removes it; ``'clip'`` clamps its label; ``'raise'`` raises ``LabelGuardError``.
        label_map (dict[int, int], optional): Raw label -> class, applied first.
        check_boxes (bool): Remove instances whose box is not finite, has no area, or is entirely outside of both the
            image and its file (mmdet's test pipelines keep boxes in the coordinates of the file). These instances
            count as skipped, with the fault of the box as the reason. Defaults to True.
        keep_ignored (bool): Keep instances that the annotations ignore (crowds, difficult objects) among the
            ignored instances. ``False`` removes them, for a model whose assigners did not use ignored instances
            (``ignore_iof_thr=-1``) before mmguard: valid instances are then trained as before. Annotated ignored
            instances are counted either way. Defaults to True.

    Raises:
        ValueError: Arguments out of range; when called, fields of different lengths, masks that do not have the
            size of the image, labels that are not 1-D. The message names the file.
        TypeError: When called, floating-point labels.
        LabelGuardError: When called, an invalid instance with ``on_invalid='raise'``.
    """

    def __init__(
        self,
        num_classes: int,
        on_invalid: str = 'ignore',
        label_map: Optional[LabelMap] = None,
        check_boxes: bool = True,
        keep_ignored: bool = True,
    ) -> None:
        warn_unreported(type(self).__name__)
        self.rule = InstanceRule(num_classes, on_invalid, label_map)
        self.check_boxes = check_boxes
        self.keep_ignored = keep_ignored

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        """Sanitize the instances of a sample, packed or not, and attach a :class:`~mmguard.labels.tally.Tally`."""
        if 'data_samples' not in results:
            _check_image(results, isinstance(results.get('img_path'), list), 'gt_labels_3d' in results)
            tally = self._adapt_to(results)._sanitize_unpacked(results)
            if tally is not None:
                leave_in_results(results, 'instances', tally, self.rule.label_map)
            return results
        sample = results['data_samples']
        _check_image(sample, 'video_data_samples' in sample, 'gt_instances_3d' in sample)
        if find_instances(sample) is None:
            return results
        tally = self._adapt_to(sample)._sanitize_packed(sample)
        leave_in_sample(sample, 'instances', tally, self.rule.label_map)
        return results

    def _adapt_to(self, sample: Any) -> GuardInstanceLabels:
        """Return this guard, or a copy with an adapted rule if an earlier guard has processed the sample."""
        if not sample.get(LABEL_GUARD):
            return self
        guard = copy.copy(self)
        guard.rule, guard.keep_ignored = adapt_rule(self.rule, sample), True
        return guard

    def _sanitize_unpacked(self, results: Dict[str, Any]) -> Optional[Tally]:
        labels, boxes = results.get('gt_bboxes_labels'), results.get('gt_bboxes')
        counted = boxes if labels is None else labels
        if counted is None:
            return None
        source = results.get('img_path')
        check_lengths(results, len(counted), source)
        extent = _find_extent(results)
        if results.get('gt_masks') is not None:
            _check_mask_size(results['gt_masks'], results, source)
        flags = results.get('gt_ignore_flags')
        ignored = None if flags is None else np.asarray(flags).astype(bool)
        leaves_out = ignored is not None and not self.keep_ignored and bool(ignored.any())
        if not leaves_out and self._is_clean(labels, boxes, extent):
            return Tally(len(counted), source=source)
        sanitized = self._sanitize_labels(labels, 'gt_bboxes_labels', boxes, extent, ignored, source)
        if labels is not None:
            results['gt_bboxes_labels'] = sanitized.labels
        if leaves_out:
            dropped = ignored if sanitized.dropped is None else ignored | sanitized.dropped
            sanitized = sanitized._replace(dropped=dropped)
        if sanitized.moved is not None:
            results['gt_ignore_flags'] = sanitized.moved if ignored is None else ignored | sanitized.moved
        if sanitized.dropped is not None:
            index = np.flatnonzero(~sanitized.dropped)
            for key in find_keys(results, len(counted)):
                results[key] = take(results[key], index)
        return sanitized.tally

    def _sanitize_packed(self, sample: Any) -> Tally:
        source, extent = sample.get('img_path'), _find_extent(sample)
        instances, ignored = sample.gt_instances, sample.get('ignored_instances')
        if 'masks' in instances:
            _check_mask_size(instances.masks, sample, source)
        labels, boxes = instances.get('labels'), instances.get('bboxes')
        if not ignored and self._is_clean(labels, boxes, extent):
            return Tally(len(labels), source=source)
        sanitized = self._sanitize_labels(labels, 'gt_instances.labels', boxes, extent, None, source)
        if labels is not None and (sanitized.tally.changed or labels.dtype != torch.int64):
            instances.labels = torch.from_numpy(sanitized.labels)
        tally = sanitized.tally
        if ignored:
            faults = self._find_faults(ignored.get('bboxes'), extent)
            crowds = self.rule.sanitize(np.zeros(len(ignored), np.int64), np.ones(len(ignored), bool), faults, source)
            tally = tally + crowds.tally
            if not self.keep_ignored:
                sample.ignored_instances = take_instances(ignored, np.arange(0))
            elif crowds.dropped is not None:
                sample.ignored_instances = take_instances(ignored, np.flatnonzero(~crowds.dropped))
        if sanitized.moved is not None:
            moved = take_instances(instances, np.flatnonzero(sanitized.moved))
            ignored = sample.get('ignored_instances')
            sample.ignored_instances = moved if ignored is None else append_instances(ignored, moved)
        if sanitized.stays is not None:
            sample.gt_instances = take_instances(instances, np.flatnonzero(sanitized.stays))
        return tally

    def _is_clean(self, labels: Any, boxes: Any, extent: Tuple[float, float]) -> bool:
        """Return True for most images without faults, after a quick test that avoids calls of torch and numpy."""
        if (
            labels is None
            or getattr(labels, 'ndim', None) != 1
            or len(labels) > FEW_INSTANCES
            or labels.dtype not in INT64
        ):
            return False
        if not self.rule.are_classes(labels.tolist()):
            return False
        return boxes is None or not self.check_boxes or are_few_and_good(boxes, extent)

    def _sanitize_labels(
        self,
        labels: Any,
        key: str,
        boxes: Any,
        extent: Tuple[float, float],
        ignored: Optional[np.ndarray],
        source: Optional[str],
    ) -> SanitizedInstances:
        if labels is None:  # only boxes
            labels = np.zeros(len(boxes) if boxes is not None else 0, dtype=np.int64)
        return self.rule.sanitize(
            _convert_to_indices(labels, key, source), ignored, self._find_faults(boxes, extent), source
        )

    def _find_faults(self, boxes: Any, extent: Tuple[float, float]) -> Optional[np.ndarray]:
        if not self.check_boxes or boxes is None:
            return None
        return find_box_faults(boxes, extent)

    def __repr__(self) -> str:
        rule = self.rule
        return (
            f'{type(self).__name__}(num_classes={rule.num_classes}, on_invalid={rule.on_invalid!r}, '
            f'label_map={rule.label_map or None}, check_boxes={self.check_boxes}, keep_ignored={self.keep_ignored})'
        )


def _check_image(sample: Any, is_video: bool, is_3d: bool) -> None:
    got = 'the frames of a video' if is_video else 'objects in space (MMDetection3D)' if is_3d else ''
    if got:
        raise ValueError(f'{get_file(sample)}: expected boxes in one image, got {got}, which mmguard does not guard')


def _convert_to_indices(labels: Any, key: str, source: Optional[str]) -> np.ndarray:
    """Return the labels as int64 (N,); values that exceed int64 become negative, so they stay invalid."""
    if not isinstance(labels, (torch.Tensor, np.ndarray)):
        raise TypeError(
            f'{source or "sample"}: {key} must be an integer array or tensor of shape (num_instances,), got '
            f'{type(labels).__name__}. Convert it where it is loaded: np.asarray({key.rpartition(".")[2]}, np.int64)'
        )
    labels = labels.numpy() if isinstance(labels, torch.Tensor) else labels
    if labels.ndim != 1:
        raise ValueError(
            f'{source or "sample"}: labels have shape {labels.shape}, expected (num_instances,) with one class '
            f'index each. One-hot labels? Convert with labels.argmax(1)'
        )
    if labels.size and labels.dtype.kind not in 'biu':
        raise TypeError(f'{source or "sample"}: labels are {labels.dtype}, expected integer class indices')
    return labels.astype(np.int64, copy=False)


def _find_extent(meta: Any) -> Tuple[float, float]:
    """Return the height and width that limit a box: of the image or of its file, whichever is larger.

    mmdet's test pipelines load annotations after resizing, in the coordinates of the file.
    """
    img_shape, ori_shape = meta.get('img_shape'), meta.get('ori_shape')
    if img_shape is None or ori_shape is None:
        shape = ori_shape if img_shape is None else img_shape
        return (_INF, _INF) if shape is None else (shape[0], shape[1])
    return max(img_shape[0], ori_shape[0]), max(img_shape[1], ori_shape[1])


def _check_mask_size(masks: Any, meta: Any, source: Optional[str]) -> None:
    shapes = [tuple(meta.get(key)[:2]) for key in ('img_shape', 'ori_shape') if meta.get(key) is not None]
    if not shapes or not len(masks) or not hasattr(masks, 'height') or (masks.height, masks.width) in shapes:
        return
    height, width = shapes[0]
    raise ValueError(
        f'{source or "sample"}: masks are {masks.height} x {masks.width}, the image is {height} x {width} (height x '
        f'width). The annotation belongs to another image, or a transform before the guard resized or padded only one '
        f'of them'
    )


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
        ValueError: A field has a different length.
    """
    for key in INSTANCE_KEYS:
        value = results.get(key)
        if value is not None and len(value) != instances:
            raise ValueError(
                f'{source or "sample"}: {key} has {len(value)} elements, but there are {instances} instances. '
                f'A transform before the guard changed only one of the fields'
            )


def find_keys(results: Dict[str, Any], instances: int) -> List[str]:
    """Return the keys of an unpacked sample whose values have one element per instance."""
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
    """Return ``InstanceData`` of the instances at ``index``, without mmengine's indexing, which slices per instance."""
    return _make_like(instances, {key: take(value, index) for key, value in instances.items()})


def append_instances(instances: Any, added: Any) -> Any:
    """Return the instances of both ``InstanceData``; fields that only one of them has are left out."""
    if not len(instances):
        return added
    fields = {key: concatenate(value, added[key]) for key, value in instances.items() if key in added}
    return _make_like(instances, fields)


def _make_like(instances: Any, fields: Dict[str, Any]) -> Any:
    made = type(instances)(metainfo=instances.metainfo)
    for key, value in fields.items():
        made.set_field(value, key)
    return made


def find_box_faults(boxes: Any, img_shape: Tuple[float, float]) -> Optional[np.ndarray]:
    """Return the index in ``BOX_REASONS`` of each box's first fault (0 if valid), or ``None`` if all boxes are valid.

    Return ``None`` for box types of mmdet other than HorizontalBoxes, too. Plain arrays hold (x1, y1, x2, y2), in
    pixels. ``img_shape`` is (height, width); if these are infinite, no box is outside.
    """
    if not len(boxes):
        return None
    corners = _get_corners(boxes)
    faults = None if corners is None else find_corner_faults(np.asarray(corners), img_shape)
    return faults if faults is not None and faults.any() else None


def are_few_and_good(boxes: Any, img_shape: Tuple[float, float]) -> bool:
    """Return True if there are at most ``FEW_INSTANCES`` boxes, of a type that can be checked, and all are valid."""
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
    """Return (N, 4) corners of horizontal boxes, without a copy, or ``None`` for any other type of box."""
    if hasattr(boxes, 'tensor'):
        box_type: Any = type(boxes)
        return boxes.tensor if _is_horizontal(box_type) else None
    return boxes if isinstance(boxes, torch.Tensor) else np.asarray(boxes)


@lru_cache(maxsize=None)
def _is_horizontal(box_type: Any) -> bool:
    from mmdet.structures.bbox import HorizontalBoxes  # not installed if boxes are plain arrays

    return issubclass(box_type, HorizontalBoxes)
