"""mmguard: one bad label must not kill, or quietly spoil, a training run.

Importing it registers the transforms, losses and hooks with mmengine; without mmengine the pure parts
(:mod:`mmguard.functional`, :mod:`mmguard.labels`, :mod:`mmguard.tally`) still import.
"""

import importlib.util as _util
from typing import Any as _Any

from mmguard.errors import LabelGuardError
from mmguard.tally import Tally
from mmguard.version import __version__

__all__ = ['LabelGuardError', 'Tally', '__version__']

if _util.find_spec('mmengine') is not None:
    from mmguard.hooks import FlightRecorderHook, LabelGuardHook, RankGuardHook
    from mmguard.losses import GuardedCrossEntropyLoss, GuardedLoss
    from mmguard.registration import load_transforms as _load_transforms
    from mmguard.registration import register_all as _register_all

    __all__ += ['GuardedCrossEntropyLoss', 'GuardedLoss']
    __all__ += ['FlightRecorderHook', 'LabelGuardHook', 'RankGuardHook']
    _transforms = _load_transforms()
    if _transforms is not None:
        GuardInstanceLabels = _transforms.GuardInstanceLabels
        GuardSegLabels = _transforms.GuardSegLabels
        __all__ += ['GuardInstanceLabels', 'GuardSegLabels']
    _register_all(_transforms)


def __getattr__(name: str) -> _Any:
    if name == 'guard_config':  # not before it is asked for: training needs nothing of it
        from mmguard.apply import guard_config

        return guard_config
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
