"""Registered mmengine hooks. Without mmengine their parts that need none (ledger, JSON lines, wording) still import."""

import importlib.util as _util

__all__ = []

if _util.find_spec('mmengine') is not None:
    from mmguard.hooks.flight_recorder_hook import FlightRecorderHook
    from mmguard.hooks.label_guard_hook import LabelGuardHook
    from mmguard.hooks.rank_guard_hook import RankGuardHook

    __all__ += ['FlightRecorderHook', 'LabelGuardHook', 'RankGuardHook']
