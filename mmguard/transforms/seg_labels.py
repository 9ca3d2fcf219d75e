"""Transform that guards semantic label maps."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import numpy as np
import torch
from mmcv.transforms import BaseTransform

from mmguard.labels.rules import LabelMap, LabelRule
from mmguard.labels.tally import adapt_rule, find_map, get_file, leave_in_results, leave_in_sample
from mmguard.log.messages import warn_unreported


class GuardSegLabels(BaseTransform):
    """Check and sanitize the semantic label map, before or after the Pack transform.

    Right after the Pack transform, the guard sees what the loss will see, and its report always reaches the hook.
    Before the Pack transform, it sanitizes early (``GenerateEdge`` then draws no edges around invalid pixels), but its
    report reaches the hook only if ``meta_keys`` of the Pack transform has ``'label_guard'``. A clean map is not
    copied, and its check takes about as long as one min/max. Put the guard after a transform that mixes several images
    (``RandomMosaic``), because that transform drops the reports of the mixed-in images.

    Required keys: ``gt_seg_map`` (H, W) of an integer dtype, or ``data_samples`` with ``gt_sem_seg`` (1, H, W). Without
    these keys, as in a test pipeline, nothing happens. Added key: ``label_guard``.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)`` and ``ignore_index``.
        ignore_index (int): The label to ignore. Defaults to 255.
        on_invalid (str): ``'ignore'`` (default) sets invalid pixels to ``ignore_index``, ``'clip'`` clamps them into
            the classes, ``'raise'`` raises ``LabelGuardError`` that names the file.
        label_map (dict[int, int], optional): Raw value -> class (or ``ignore_index``), applied first;
            ``{7: 0, 8: 1, '*': 255}`` ignores all values except 7 and 8. A second guard with the same map does not
            apply the map again if it gets the report of the first guard.

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
        if 'pts_semantic_mask' in results:
            raise ValueError(f'{get_file(results)}: expected a label map, got points, which mmguard does not guard')
        label = results.get('gt_seg_map')
        if label is not None:
            source = get_file(results)
            _check(label, label.shape, source)
            results['gt_seg_map'], tally = adapt_rule(self.rule, results).sanitize(label, source)
            leave_in_results(results, 'pixels', tally, self.rule.label_map)
        return results

    def _sanitize_packed(self, sample: Any) -> None:
        found = find_map(sample)
        if 'gt_pts_seg' in sample:
            raise ValueError(f'{get_file(sample)}: expected a label map, got points, which mmguard does not guard')
        if found is None:
            return
        holder, field = found
        source = get_file(sample)
        label = holder.get(field).numpy()
        _check(label, label.shape[1:] if label.shape[:1] == (1,) else label.shape, source)
        sanitized, tally = adapt_rule(self.rule, sample).sanitize(label, source)
        if sanitized is not label:
            holder.set_field(torch.from_numpy(sanitized), field)
        leave_in_sample(sample, 'pixels', tally, self.rule.label_map)

    def __repr__(self) -> str:
        rule = self.rule
        return (
            f'{type(self).__name__}(num_classes={rule.num_classes}, ignore_index={rule.ignore_index}, '
            f'on_invalid={rule.on_invalid!r}, label_map={rule.label_map or None})'
        )


def _check(label: np.ndarray, shape: Tuple[int, ...], source: Optional[str]) -> None:
    where = source or 'gt_seg_map'
    if len(shape) != 2:
        raise ValueError(
            f'{where}: the label map has shape {tuple(label.shape)}, expected (height, width) with one class index '
            f'per pixel. Is it a color-coded mask? Convert its colors to class indices once and save them as '
            f'single-channel 8-bit PNG'
        )
    if label.dtype.kind == 'f':
        raise TypeError(
            f'{where}: expected a label map of integers, got {label.dtype}. Was it resized bilinearly (label maps need '
            f'nearest), or scaled to 0..1 (ToTensor is for images)?'
        )
    if label.dtype.kind not in 'biu':
        raise TypeError(f'{where}: expected a label map of integers, got {label.dtype}')
