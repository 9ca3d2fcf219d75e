"""Losses registered with mmengine; those imported here average like mmseg's, those in ``losses.mmdet`` like mmdet's.

Imports :mod:`mmguard.nn`, :mod:`mmguard.functional`, the packages below them, and mmengine.
"""

from mmguard.losses.guarded_loss import RootGuardedLoss as GuardedLoss
from mmguard.losses.mmseg import GuardedCrossEntropyLoss
from mmguard.nn.counting import CountsLabels

__all__ = ['CountsLabels', 'GuardedCrossEntropyLoss', 'GuardedLoss']
