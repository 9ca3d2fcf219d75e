"""Registered losses. The names here follow mmseg's rules; mmdet's are in :mod:`mmguard.losses.mmdet`.

Imports :mod:`mmguard.nn`, :mod:`mmguard.functional`, what is below them, and mmengine.
"""

from mmguard.losses.counting import CountsLabels
from mmguard.losses.guarded_loss import RootGuardedLoss as GuardedLoss
from mmguard.losses.mmseg import GuardedCrossEntropyLoss

__all__ = ['CountsLabels', 'GuardedCrossEntropyLoss', 'GuardedLoss']
