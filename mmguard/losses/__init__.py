"""Registered losses. The names here follow mmseg's rules; mmdet's are in :mod:`mmguard.losses.mmdet`.

Imports :mod:`mmguard.nn`, :mod:`mmguard.functional`, what is below them, and mmengine.
"""

from mmguard.losses.guarded_loss import RootGuardedLoss as GuardedLoss
from mmguard.losses.mmseg import GuardedCrossEntropyLoss
from mmguard.nn.counting import CountsLabels

__all__ = ['CountsLabels', 'GuardedCrossEntropyLoss', 'GuardedLoss']
