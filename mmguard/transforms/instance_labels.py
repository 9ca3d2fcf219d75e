"""The guard of instances: boxes, labels, masks."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import numpy as np
import torch
from mmcv.transforms import BaseTransform

from mmguard.instances import InstanceRule, MendedInstances
from mmguard.labels import LabelMap
from mmguard.transforms.boxes import box_faults
from mmguard.transforms.per_instance import appended, check_lengths, keys_of, take, taken
from mmguard.transforms.record import leave_in_results, leave_in_sample

#: (height, width), one or several.
Sizes = List[Tuple[int, int]]


class GuardInstanceLabels(BaseTransform):
    """Checks and mends the instances of an image, before or after PackDetInputs.

    Right after it, it sees what the loss will see, and its report always reaches the hook. Before it, the report
    travels if ``'label_guard'`` is in the ``meta_keys`` of PackDetInputs. Where a transform mixes several images
    (Mosaic, MixUp, CopyPaste), put the guard behind it: the reports of the mixed-in images end there. All fields of an
    instance stay in line, labels become int64, and an image that loses all of them stays usable. Panoptic samples
    want GuardSegLabels beside it.

    Required keys: ``gt_bboxes_labels`` or ``gt_bboxes``, or ``data_samples`` with ``gt_instances``. Without them (a
    test pipeline) nothing happens. Added key: ``label_guard``.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)``. mmdet's background, ``num_classes``, is none: an
            instance with that label would be trained as background.
        on_invalid (str): What becomes of an instance with an invalid label: ``'ignore'`` (default) moves it to the
            ignored instances, whose region assigners with ``ignore_iof_thr`` > 0 train neither as an object nor as
            background; ``'drop'`` removes it; ``'clip'`` clamps its label; ``'raise'`` raises ``LabelGuardError``.
        label_map (dict[int, int], optional): Raw label -> class, applied first.
        check_boxes (bool): Whether instances are removed whose box is not finite, has no area or lies wholly outside
            the image (and the image file, whose coordinates mmdet's test pipelines keep). Counted as skipped, under
            that reason. Defaults to True.

    Raises:
        ValueError: Arguments out of range; when called, fields of different lengths, masks that are not of the
            image's size, labels that are not 1-D. The message names the file.
        TypeError: When called, floating-point labels.
        LabelGuardError: When called, an invalid instance with ``on_invalid='raise'``.
    """

    def __init__(
        self,
        num_classes: int,
        on_invalid: str = 'ignore',
        label_map: Optional[LabelMap] = None,
        check_boxes: bool = True,
    ) -> None:
        self.rule = InstanceRule(num_classes, on_invalid, label_map)
        self.check_boxes = check_boxes

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        """Mends the instances and leaves a :class:`~mmguard.tally.Tally` of them.

        Args:
            results (dict): The sample, packed or not.

        Returns:
            dict: The same dict.
        """
        if 'data_samples' not in results:
            self._mend_unpacked(results)
        elif results['data_samples'].get('gt_instances', {}).keys():  # without annotations they have no field at all
            self._mend_packed(results['data_samples'], results.get('inputs'))
        return results

    def _mend_unpacked(self, results: Dict[str, Any]) -> None:
        labels, boxes = results.get('gt_bboxes_labels'), results.get('gt_bboxes')
        counted = boxes if labels is None else labels
        if counted is None:
            return
        source = results.get('img_path')
        check_lengths(results, len(counted), source)
        sizes = _sizes(results['img'].shape[:2] if 'img' in results else results.get('img_shape'), results)
        _check_mask_size(results.get('gt_masks'), sizes, source)
        flags = results.get('gt_ignore_flags')
        ignored = None if flags is None else np.asarray(flags).astype(bool)
        mended = self._mended(labels, boxes, sizes, ignored, source)
        if labels is not None:
            results['gt_bboxes_labels'] = mended.labels
        if mended.moved is not None:
            results['gt_ignore_flags'] = mended.moved if ignored is None else ignored | mended.moved
        if mended.dropped is not None:
            index = np.flatnonzero(~mended.dropped)
            for key in keys_of(results, len(counted)):
                results[key] = take(results[key], index)
        leave_in_results(results, 'instances', mended.tally)

    def _mend_packed(self, sample: Any, image: Any) -> None:
        source = sample.get('img_path')
        sizes = _sizes(image.shape[-2:] if isinstance(image, torch.Tensor) else sample.get('img_shape'), sample)
        instances = sample.gt_instances
        _check_mask_size(instances.get('masks'), sizes, source)
        labels = instances.get('labels')
        mended = self._mended(labels, instances.get('bboxes'), sizes, None, source)
        if labels is not None and (mended.tally or labels.dtype != torch.int64):
            instances.labels = torch.from_numpy(mended.labels)
        tally = mended.tally
        ignored = sample.get('ignored_instances')
        if ignored is not None and len(ignored):
            faults = self._faults(ignored.get('bboxes'), sizes)
            crowds = self.rule.mend(np.zeros(len(ignored), np.int64), np.ones(len(ignored), bool), faults, source)
            tally = tally + crowds.tally
            if crowds.dropped is not None:
                sample.ignored_instances = taken(ignored, np.flatnonzero(~crowds.dropped))
        if mended.moved is not None:
            moved = taken(instances, np.flatnonzero(mended.moved))
            ignored = sample.get('ignored_instances')
            sample.ignored_instances = moved if ignored is None else appended(ignored, moved)
        if mended.stays is not None:
            sample.gt_instances = taken(instances, np.flatnonzero(mended.stays))
        leave_in_sample(sample, 'instances', tally)

    def _mended(
        self, labels: Any, boxes: Any, sizes: Sizes, ignored: Optional[np.ndarray], source: Optional[str]
    ) -> MendedInstances:
        if labels is None:  # boxes alone
            labels = np.zeros(len(boxes) if boxes is not None else 0, dtype=np.int64)
        return self.rule.mend(_class_indices(labels, source), ignored, self._faults(boxes, sizes), source)

    def _faults(self, boxes: Any, sizes: Sizes) -> Optional[np.ndarray]:
        if not self.check_boxes or boxes is None:
            return None
        # Whichever size the boxes refer to: outside of both.
        return box_faults(boxes, (max(h for h, _ in sizes), max(w for _, w in sizes)) if sizes else None)

    def __repr__(self) -> str:
        rule = self.rule
        return (
            f'{type(self).__name__}(num_classes={rule.num_classes}, on_invalid={rule.on_invalid!r}, '
            f'label_map={rule.label_map or None}, check_boxes={self.check_boxes})'
        )


def _class_indices(labels: Any, source: Optional[str]) -> np.ndarray:
    """int64 (N,); what exceeds int64 turns negative, invalid either way."""
    labels = labels.numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)
    if labels.ndim != 1:
        raise ValueError(
            f'{source or "sample"}: labels have shape {labels.shape}, wanted is (number of instances,) with one class '
            f'index each. One-hot labels? Convert with labels.argmax(1)'
        )
    if labels.size and labels.dtype.kind not in 'biu':
        raise TypeError(f'{source or "sample"}: labels are {labels.dtype}, wanted are integer class indices')
    return labels.astype(np.int64, copy=False)


def _sizes(img_shape: Any, meta: Any) -> Sizes:
    """The sizes that annotations may refer to: of the image, and of its file.

    mmdet's test pipelines load annotations behind the resizing, in the coordinates of the file.
    """
    return [(int(shape[0]), int(shape[1])) for shape in (img_shape, meta.get('ori_shape')) if shape is not None]


def _check_mask_size(masks: Any, sizes: Sizes, source: Optional[str]) -> None:
    if masks is None or not sizes or not hasattr(masks, 'height'):
        return
    size = (masks.height, masks.width)
    if size not in sizes and len(masks):
        height, width = sizes[0]
        raise ValueError(
            f'{source or "sample"}: masks are {size[0]} x {size[1]}, the image is {height} x {width} (height x width). '
            f'The annotation belongs to another image, or a transform before the guard resized or padded only one of '
            f'them'
        )
