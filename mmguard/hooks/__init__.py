"""Hooks registered with mmengine.

Imports :mod:`mmguard.losses`, :mod:`mmguard.distributed`, :mod:`mmguard.log`, the packages below them, and mmengine.
Imports :mod:`mmguard.findings` only when a label is invalid.
"""

from mmguard.hooks.flight_recorder_hook import FlightRecorderHook
from mmguard.hooks.label_guard_hook import LabelGuardHook
from mmguard.hooks.rank_guard_hook import RankGuardHook

__all__ = ['FlightRecorderHook', 'LabelGuardHook', 'RankGuardHook']
