"""The guard of semantic label maps."""

from __future__ import annotations

from typing import Any, Dict, Optional

import numpy as np
import torch
from mmcv.transforms import BaseTransform

from mmguard.labels import OTHERS
from mmguard.labels.space import LabelMap, LabelRule
from mmguard.transforms.record import leave_in_results, leave_in_sample


class GuardSegLabels(BaseTransform):
    """Checks and sanitizes the semantic label map, before or after the Pack transform.

    Right after the Pack transform it sees what the loss will see, and its report always reaches the hook. Before it,
    it sanitizes early (``GenerateEdge`` draws no edges around bad pixels); the report then travels if
    ``'label_guard'`` is in the Pack transform's ``meta_keys``. A clean map costs about one min/max and is not
    copied. Where a transform mixes several images (``RandomMosaic``), put the guard behind it: the reports of the
    mixed-in images end there.

    Required keys: ``gt_seg_map`` (H, W) of an integer dtype, or ``data_samples`` with ``gt_sem_seg`` (1, H, W).
    Without either (a test pipeline) nothing happens. Added key: ``label_guard``.

    Args:
        num_classes (int): Valid labels are ``[0, num_classes)`` and ``ignore_index``.
        ignore_index (int): The label that is not trained on. Defaults to 255.
        on_invalid (str): ``'ignore'`` (default) sets invalid pixels to ``ignore_index``, ``'clip'`` clamps them into
            the classes, ``'raise'`` raises ``LabelGuardError`` that names the file.
        label_map (dict[int, int], optional): Raw value -> class (or ``ignore_index``), applied first;
            ``{7: 0, 8: 1, '*': 255}`` ignores every value that it does not name.

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
        self.rule = LabelRule(num_classes, ignore_index, on_invalid, label_map)

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        """Sanitizes the label map and leaves a :class:`~mmguard.labels.tally.Tally` of it.

        Args:
            results (dict): The sample, packed or not.

        Returns:
            dict: The same dict.
        """
        if 'data_samples' in results:
            self._sanitize_packed(results['data_samples'])
        elif results.get('gt_seg_map') is not None:
            source = results.get('seg_map_path') or results.get('img_path')
            label = results['gt_seg_map']
            _check_map(label, label.shape, source)
            results['gt_seg_map'], tally = self.rule.sanitize(label, source)
            leave_in_results(results, 'pixels', tally)
        return results

    def _sanitize_packed(self, sample: Any) -> None:
        if 'gt_sem_seg' not in sample:
            return
        field = 'data' if 'data' in sample.gt_sem_seg else 'sem_seg'  # mmseg's name, mmdet's name
        packed = sample.gt_sem_seg.get(field)
        source = sample.get('seg_map_path') or sample.get('img_path')
        label = packed.numpy()
        _check_map(label, label.shape[1:] if label.shape[:1] == (1,) else label.shape, source)
        sanitized, tally = self.rule.sanitize(label, source)
        if sanitized is not label:
            sample.gt_sem_seg.set_field(torch.from_numpy(sanitized), field)
        leave_in_sample(sample, 'pixels', tally)

    def _label_map(self) -> Optional[Dict[Any, int]]:
        others = {} if self.rule.others is None else {OTHERS: self.rule.others}
        return {**self.rule.label_map, **others} or None

    def __repr__(self) -> str:
        rule = self.rule
        return (
            f'{type(self).__name__}(num_classes={rule.num_classes}, ignore_index={rule.ignore_index}, '
            f'on_invalid={rule.on_invalid!r}, label_map={self._label_map()})'
        )


def _check_map(label: np.ndarray, shape: tuple, source: Optional[str]) -> None:
    where = source or 'gt_seg_map'
    if len(shape) != 2:
        raise ValueError(
            f'{where}: the label map has shape {tuple(label.shape)}, wanted is (height, width) with one class index '
            f'per pixel. Is it a colour-coded mask? Convert its colours to class indices once and save them as '
            f'single-channel 8-bit PNG'
        )
    if label.dtype.kind == 'f':
        raise TypeError(
            f'{where}: the label map is {label.dtype}, wanted are integers. Was it resized bilinearly (label maps need '
            f'nearest), or scaled to 0..1 (ToTensor is for images)?'
        )
    if label.dtype.kind not in 'biu':
        raise TypeError(f'{where}: the label map is {label.dtype}, wanted are integers')
