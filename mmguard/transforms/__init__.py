"""Registered pipeline transforms."""

from mmguard.transforms.seg_labels import GuardSegLabels

__all__ = ['GuardSegLabels']
