"""Pipeline transforms registered with mmengine.

Imports :mod:`mmguard.labels`, the packages below it, and mmcv; mmdet only if a sample has boxes of mmdet's classes.
"""

from mmguard.transforms.instance_labels import GuardInstanceLabels
from mmguard.transforms.seg_labels import GuardSegLabels

__all__ = ['GuardInstanceLabels', 'GuardSegLabels']
