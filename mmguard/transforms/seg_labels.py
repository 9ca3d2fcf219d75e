"""Guards of semantic label maps, and of the labels of points."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Tuple

import numpy as np
import torch
from mmcv.transforms import BaseTransform

from mmguard.labels.samples import POINTS, file_of, find_map, leave_in_results, leave_in_sample, rule_for
from mmguard.labels.space import LabelMap, LabelRule, check_int, check_on_invalid, invalid_label_error, value_counts
from mmguard.labels.tally import Tally
from mmguard.log.messages import warn_unreported


class GuardSegLabels(BaseTransform):
    """Check and sanitize the semantic label map, or the labels of points, before or after the Pack transform.

    Right after the Pack transform it sees what the loss will see, and its report always reaches the hook. Before it,
    it sanitizes early (``GenerateEdge`` then draws no edges around invalid pixels); the report travels if
    ``'label_guard'`` is in the Pack transform's ``meta_keys``. A clean map costs about one min/max and is not
    copied. If a transform mixes several images (``RandomMosaic``), put the guard after it: it drops the reports of
    the mixed-in images.

    Points (MMDetection3D) count as pixels. PointSegClassMapping turns raw values into classes, and ends the
    training at a value outside its table: GuardedPointSegClassMapping in its place does not.

    Required keys: ``gt_seg_map`` (H, W) or ``pts_semantic_mask`` (N,) of an integer dtype, or ``data_samples`` with
    ``gt_sem_seg`` (1, H, W) or ``gt_pts_seg`` (N,). Nothing happens without them (a test pipeline). Added key:
    ``label_guard``.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)`` and ``ignore_index``.
        ignore_index (int): The label to ignore. Defaults to 255.
        on_invalid (str): ``'ignore'`` (default) sets invalid pixels to ``ignore_index``, ``'clip'`` clamps them into
            the classes, ``'raise'`` raises ``LabelGuardError`` that names the file.
        label_map (dict[int, int], optional): Raw value -> class (or ``ignore_index``), applied first;
            ``{7: 0, 8: 1, '*': 255}`` ignores every value that it does not name. A second guard with the same map
            does not apply it again, if the report of the first reaches it.

    Raises:
        ValueError: Arguments out of range; when called, a label map that is not 2-D.
        TypeError: When called, a floating-point label map.
        LabelGuardError: When called, an invalid label with ``on_invalid='raise'``.
    """

    def __init__(
        self,
        num_classes: int,
        ignore_index: int = 255,
        on_invalid: str = 'ignore',
        label_map: Optional[LabelMap] = None,
    ) -> None:
        warn_unreported(type(self).__name__)
        self.rule = LabelRule(num_classes, ignore_index, on_invalid, label_map)

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        """Sanitize the label map of a sample, packed or not, and attach a :class:`~mmguard.labels.tally.Tally`."""
        if 'data_samples' in results:
            self._sanitize_packed(results['data_samples'])
            return results
        for key in ('gt_seg_map', POINTS):
            label = results.get(key)
            if label is not None:
                source = file_of(results)
                _check(label, label.shape, key == POINTS, source)
                results[key], tally = rule_for(self.rule, results).sanitize(label, source)
                leave_in_results(results, 'pixels', tally, self.rule.whole_map)
        return results

    def _sanitize_packed(self, sample: Any) -> None:
        found = find_map(sample)
        if found is None:
            return
        holder, field = found
        source = file_of(sample)
        label = holder.get(field).numpy()
        _check(label, label.shape[1:] if label.shape[:1] == (1,) else label.shape, field == POINTS, source)
        sanitized, tally = rule_for(self.rule, sample).sanitize(label, source)
        if sanitized is not label:
            holder.set_field(torch.from_numpy(sanitized), field)
        leave_in_sample(sample, 'pixels', tally, self.rule.whole_map)

    def __repr__(self) -> str:
        rule = self.rule
        return (
            f'{type(self).__name__}(num_classes={rule.num_classes}, ignore_index={rule.ignore_index}, '
            f'on_invalid={rule.on_invalid!r}, label_map={rule.whole_map or None})'
        )


def _check(label: np.ndarray, shape: Tuple[int, ...], of_points: bool, source: Optional[str]) -> None:
    where = source or (POINTS if of_points else 'gt_seg_map')
    if of_points and label.ndim != 1:
        raise ValueError(
            f'{where}: the labels of the points have shape {tuple(label.shape)}, expected (number of points,) with '
            f'one class index per point. Does seg_3d_dtype of LoadAnnotations3D match the file?'
        )
    if not of_points and len(shape) != 2:
        raise ValueError(
            f'{where}: the label map has shape {tuple(label.shape)}, expected (height, width) with one class index '
            f'per pixel. Is it a colour-coded mask? Convert its colours to class indices once and save them as '
            f'single-channel 8-bit PNG'
        )
    if label.dtype.kind == 'f':
        raise TypeError(
            f'{where}: the label map is {label.dtype}, expected integers. Was it resized bilinearly (label maps need '
            f'nearest), or scaled to 0..1 (ToTensor is for images)?'
        )
    if label.dtype.kind not in 'biu':
        raise TypeError(f'{where}: the label map is {label.dtype}, expected integers')


class GuardedPointSegClassMapping(BaseTransform):
    """mmdet3d's PointSegClassMapping, but a value outside the table counts as unlabelled.

    The table comes from the data set (``seg_all_class_ids`` of its type, or ``max_label``). Without the guard, a value
    above it raises an IndexError, and a negative one is looked up from the end, so that the points are trained as
    another class.

    Required keys: ``pts_semantic_mask`` (N,) of an integer dtype, ``seg_label_mapping`` (M,): value -> class. Modified
    key: ``pts_semantic_mask``, int64; also that of ``eval_ann_info``. Added key: ``label_guard``, which reaches the
    hook if it is in the ``meta_keys`` of Pack3DDetInputs.

    Args:
        ignore_index (int, optional): The ignore_index of the head. ``None``: the highest number in the table, which
            data sets have after their classes.
        on_invalid (str): ``'ignore'`` (default) makes such points unlabelled, ``'raise'`` raises ``LabelGuardError``
            that names the file.
        label_map (dict[int, int], optional): Value -> class, looked up before the table, for values that the table
            lacks or that you want to change. These are not mistakes, and count as mapped.

    Raises:
        ValueError, TypeError: An unusable argument.
        LabelGuardError: When called, an invalid value with ``on_invalid='raise'``.
    """

    def __init__(
        self,
        ignore_index: Optional[int] = None,
        on_invalid: str = 'ignore',
        label_map: Optional[Mapping[int, int]] = None,
    ) -> None:
        self.ignore_index = None if ignore_index is None else check_int('ignore_index', ignore_index)
        self.on_invalid = check_on_invalid(on_invalid, ('ignore', 'raise'))
        self.label_map = {
            check_int('a value of label_map', raw): check_int('a class of label_map', label)
            for raw, label in dict(label_map or {}).items()
        }

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        """Map the labels of the points, and attach a :class:`~mmguard.labels.tally.Tally` of those not in the table."""
        table, raw = np.asarray(results['seg_label_mapping']), np.asarray(results[POINTS])
        mapped = np.isin(raw, list(self.label_map))
        invalid = ((raw < 0) | (raw >= len(table))) & ~mapped
        tally = Tally(raw.size, int(invalid.sum()), values=value_counts(raw[invalid]), source=file_of(results))
        tally.mapped = int(mapped.sum())
        if tally and self.on_invalid == 'raise':
            positions = [(int(place),) for place in np.flatnonzero(invalid)[:5]]
            raise invalid_label_error(tally, positions, len(table), None)
        unlabelled = int(table.max()) if self.ignore_index is None else self.ignore_index
        labels = np.where(invalid, unlabelled, table[np.where(invalid | mapped, 0, raw)])
        for value, label in self.label_map.items():
            labels[raw == value] = label
        results[POINTS] = labels
        if 'eval_ann_info' in results:
            results['eval_ann_info'][POINTS] = results[POINTS]
        leave_in_results(results, 'pixels', tally, self.label_map)
        return results

    def __repr__(self) -> str:
        more = f', label_map={self.label_map}' if self.label_map else ''
        return f'{type(self).__name__}(ignore_index={self.ignore_index}, on_invalid={self.on_invalid!r}{more})'
