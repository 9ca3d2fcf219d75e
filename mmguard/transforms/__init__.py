"""Registered pipeline transforms.

Imports :mod:`mmguard.labels`, what is below it, and mmcv; mmdet only if a sample has boxes of mmdet's classes.
"""

from mmguard.transforms.instance_labels import GuardInstanceLabels
from mmguard.transforms.seg_labels import GuardSegLabels

__all__ = ['GuardInstanceLabels', 'GuardSegLabels']
