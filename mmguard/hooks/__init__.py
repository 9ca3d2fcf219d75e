"""Registered hooks.

Imports :mod:`mmguard.losses`, :mod:`mmguard.distributed`, :mod:`mmguard.log`, what is below them, and mmengine;
findings when a label is invalid.
"""

from mmguard.hooks.flight_recorder_hook import FlightRecorderHook
from mmguard.hooks.label_guard_hook import LabelGuardHook
from mmguard.hooks.rank_guard_hook import RankGuardHook

__all__ = ['FlightRecorderHook', 'LabelGuardHook', 'RankGuardHook']
