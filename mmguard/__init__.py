"""mmguard: one bad label must not kill, or quietly spoil, a training run.

Importing it registers the transforms, losses and hooks with mmengine. Without mmengine the parts that need torch and
numpy alone (:mod:`mmguard.functional`, :mod:`mmguard.nn`, :mod:`mmguard.distributed`, the scan) are there.
"""

import importlib as _importlib
import importlib.util as _util
import warnings as _warnings
from typing import Any as _Any

from mmguard.errors import LabelGuardError
from mmguard.tally import Tally
from mmguard.version import __version__

__all__ = ['LabelGuardError', 'Tally', '__version__']


def _mmengine_works() -> bool:
    if _util.find_spec('mmengine') is None:
        return False
    try:
        _importlib.import_module('mmengine.runner')
    except Exception as error:  # two stacks in one folder, say: `mmguard env`, which tells that, must still run
        _warnings.warn(
            f'mmguard: mmengine is installed but cannot be imported ({error}); nothing is registered. `mmguard env` '
            f'says what is wrong with the installation',
            stacklevel=3,
        )
        return False
    return True


if _mmengine_works():
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
    if name in ('distributed', 'functional', 'nn'):  # `import mmguard` is enough, as with torch.nn
        return _importlib.import_module(f'mmguard.{name}')
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
