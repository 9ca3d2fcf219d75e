"""The step of mmdet3d that makes classes of what label files of points hold, safe against any value."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

import numpy as np
from mmcv.transforms import BaseTransform

from mmguard.labels.maps import POINTS
from mmguard.labels.origin import file_of
from mmguard.labels.space import check_int, check_on_invalid, invalid_label_error, value_counts
from mmguard.labels.tally import Tally
from mmguard.transforms.record import leave_in_results


class GuardedPointSegClassMapping(BaseTransform):
    """mmdet3d's PointSegClassMapping, for which a value that the table does not hold counts as unlabelled.

    The table comes from the data set (``seg_all_class_ids`` of its type, or ``max_label``). There, a value behind its
    end raises an IndexError, and a negative one is looked up from the end, so that the points are trained as another
    class.

    Required keys: ``pts_semantic_mask`` (N,) of an integer dtype, ``seg_label_mapping`` (M,): value -> class. Modified
    key: ``pts_semantic_mask``, int64; that of ``eval_ann_info``, too. Added key: ``label_guard``, which arrives at the
    hook if it is in the ``meta_keys`` of Pack3DDetInputs.

    Args:
        ignore_index (int, optional): What the head ignores. ``None``: the highest number in the table, which data sets
            have behind their classes.
        on_invalid (str): ``'ignore'`` (default) makes such points unlabelled, ``'raise'`` raises ``LabelGuardError``
            that names the file.
        label_map (dict[int, int], optional): Value -> class, looked up before the table: values that it does not hold,
            and what you want otherwise. These are no mistakes, and count as mapped.

    Raises:
        ValueError, TypeError: An argument that cannot be used.
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
        """Maps the labels of the points and leaves a :class:`~mmguard.labels.tally.Tally` of what was not in the table.

        Args:
            results (dict): The sample, not packed yet.

        Returns:
            dict: The same dict.
        """
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
