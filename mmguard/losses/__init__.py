"""Losses registered with mmengine: these average like mmseg's, those of :mod:`mmguard.losses.mmdet` like mmdet's.

Imports :mod:`mmguard.nn`, :mod:`mmguard.functional`, the packages below them, and mmengine.
"""

from mmguard.losses.guarded_loss import RootGuardedLoss as GuardedLoss
from mmguard.losses.mmseg import GuardedCrossEntropyLoss
from mmguard.nn.counting import CountsLabels

__all__ = ['CountsLabels', 'GuardedCrossEntropyLoss', 'GuardedLoss']
