"""What a packed sample holds labels in: a label map or points, instances or objects in space."""

from __future__ import annotations

from typing import Any, Optional, Tuple

#: What mmdet3d calls the labels of points, packed or not.
POINTS = 'pts_semantic_mask'
#: What holds them -> their names there: mmseg's, mmdet's, mmdet3d's.
_PLACES = {'gt_sem_seg': ('data', 'sem_seg'), 'gt_pts_seg': (POINTS,)}
#: What holds instances -> the name of their labels.
_INSTANCES = {'gt_instances': 'labels', 'gt_instances_3d': 'labels_3d'}


def packed_map(sample: Any) -> Optional[Tuple[Any, str]]:
    """What holds the labels, and the name of the field; ``None`` where a sample has none."""
    for place, fields in _PLACES.items():
        holder = sample.get(place)
        for field in fields:
            if holder is not None and field in holder:
                return holder, field
    return None


def packed_instances(sample: Any) -> Optional[Tuple[Any, str]]:
    """What holds the instances, and the name of their labels; ``None`` where a sample has none, or no annotations."""
    for place, field in _INSTANCES.items():
        holder = sample.get(place)
        if holder is not None and holder.keys():  # without annotations it has no field at all
            return holder, field
    return None
