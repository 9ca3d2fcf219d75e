"""Losses registered with mmengine. These average like mmseg; :mod:`mmguard.losses.mmdet` averages like mmdet.

Imports :mod:`mmguard.nn`, :mod:`mmguard.functional`, the packages below them, and mmengine.
"""

from mmguard.losses.guarded_loss import RootGuardedLoss as GuardedLoss
from mmguard.losses.mmseg import GuardedCrossEntropyLoss
from mmguard.nn.counting import CountsLabels

__all__ = ['CountsLabels', 'GuardedCrossEntropyLoss', 'GuardedLoss']
