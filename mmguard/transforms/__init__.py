"""Registered pipeline transforms."""

from mmguard.transforms.instance_labels import GuardInstanceLabels
from mmguard.transforms.seg_labels import GuardSegLabels

__all__ = ['GuardInstanceLabels', 'GuardSegLabels']
