"""Registration of mmguard's classes with mmengine and the installed frameworks."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import warnings
from functools import partial
from types import ModuleType
from typing import Dict, Optional

from mmengine.logging import MessageHub, print_log
from mmengine.registry import HOOKS, MODELS, TRANSFORMS, Registry

import mmguard.losses
import mmguard.losses.mmdet
import mmguard.losses.mmseg
from mmguard.hooks import FlightRecorderHook, LabelGuardHook, RankGuardHook
from mmguard.log.messages import Run, set_run_finder

#: Name of the message hub that mmengine creates outside of a Runner.
_NO_RUN = 'mmengine'


def register_all() -> None:
    """Register transforms and hooks in mmengine's root registries, and losses there and in every installed scope.

    A registry that is queried with its own scope (``mmseg.GuardedLoss`` inside an mmseg config) does not look in its
    parent, so the losses are registered in each scope.
    """
    set_run_finder(_find_run)
    for hook in (FlightRecorderHook, LabelGuardHook, RankGuardHook):
        HOOKS.register_module(module=hook, force=True)
    transforms = _load('mmguard.transforms', needs='mmcv', effect='the transforms are missing')
    if transforms is not None:
        for name in transforms.__all__:
            TRANSFORMS.register_module(module=getattr(transforms, name), force=True)
    _register_losses(
        MODELS, {name: getattr(mmguard.losses, name) for name in ('GuardedCrossEntropyLoss', 'GuardedLoss')}
    )
    for scope, losses in (('mmseg', mmguard.losses.mmseg), ('mmdet', mmguard.losses.mmdet)):
        registry = _load(f'{scope}.registry', needs=scope, effect='its losses are not guarded')
        if registry is not None:
            _register_losses(registry.MODELS, losses.LOSSES)


def _find_run() -> Optional[Run]:
    """Return (name, log function) of the current run of mmengine's Runner, or ``None`` outside of a run."""
    name = MessageHub.get_current_instance().instance_name
    return None if name == _NO_RUN else (name, partial(print_log, logger='current', level=logging.WARNING))


def _register_losses(registry: Registry, losses: Dict[str, type]) -> None:
    for name, loss in losses.items():
        registry.register_module(name=name, module=loss, force=True)


def _load(module: str, needs: str, effect: str) -> Optional[ModuleType]:
    if importlib.util.find_spec(needs) is None:
        return None
    try:
        return importlib.import_module(module)
    except Exception as error:  # a broken install must not take the rest down
        warnings.warn(f'mmguard: {needs} is installed but cannot be imported ({error}); {effect}', stacklevel=3)
        return None
