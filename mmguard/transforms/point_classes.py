"""The step of mmdet3d that makes classes of what label files of points hold, safe against any value."""

from __future__ import annotations

from typing import Any, Dict

import numpy as np
from mmcv.transforms import BaseTransform

from mmguard.labels.maps import POINTS
from mmguard.labels.origin import file_of
from mmguard.labels.space import LabelRule, check_on_invalid
from mmguard.transforms.record import leave_in_results


class GuardedPointSegClassMapping(BaseTransform):
    """mmdet3d's PointSegClassMapping, for which a value that the table does not hold counts as unlabelled.

    The table comes from the data set (``seg_all_class_ids`` of its type). There, a value behind its end raises an
    IndexError, and a negative one is looked up from the end, so that the points are trained as another class.

    Required keys: ``pts_semantic_mask`` (N,) of an integer dtype, ``seg_label_mapping`` (M,): value -> class, with one
    number more for what is not labelled. Modified key: ``pts_semantic_mask``, int64; that of ``eval_ann_info``, too.
    Added key: ``label_guard``, which arrives at the hook if it is in the ``meta_keys`` of Pack3DDetInputs.

    Args:
        on_invalid (str): ``'ignore'`` (default) makes such points unlabelled, ``'raise'`` raises ``LabelGuardError``
            that names the file.

    Raises:
        ValueError: An unknown ``on_invalid``.
        LabelGuardError: When called, an invalid value with ``on_invalid='raise'``.
    """

    def __init__(self, on_invalid: str = 'ignore') -> None:
        self.on_invalid = check_on_invalid(on_invalid, ('ignore', 'raise'))

    def transform(self, results: Dict[str, Any]) -> Dict[str, Any]:
        """Maps the labels of the points and leaves a :class:`~mmguard.labels.tally.Tally` of what was not in the table.

        Args:
            results (dict): The sample, not packed yet.

        Returns:
            dict: The same dict.
        """
        table = np.asarray(results['seg_label_mapping'])
        unlabelled = int(table.argmax())  # the number behind the classes is the highest
        rule = LabelRule(len(table), unlabelled, self.on_invalid)
        values, tally = rule.sanitize(results[POINTS], file_of(results))
        results[POINTS] = table[values]
        if 'eval_ann_info' in results:
            results['eval_ann_info'][POINTS] = results[POINTS]
        leave_in_results(results, 'pixels', tally)
        return results

    def __repr__(self) -> str:
        return f'{type(self).__name__}(on_invalid={self.on_invalid!r})'
