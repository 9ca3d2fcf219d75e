"""Pipeline transforms registered with mmengine.

It imports :mod:`mmguard.labels`, :mod:`mmguard.log` and mmcv, and mmdet only if a sample has boxes of mmdet's classes.
"""

from mmguard.transforms.instance_labels import GuardInstanceLabels
from mmguard.transforms.seg_labels import GuardSegLabels

__all__ = ['GuardInstanceLabels', 'GuardSegLabels']
