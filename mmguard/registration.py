"""Puts the classes into the registries of mmengine and of the frameworks that are installed."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from typing import Any, Optional

from mmengine.registry import HOOKS, MODELS, TRANSFORMS, Registry

import mmguard.losses
import mmguard.losses.mmdet
import mmguard.losses.mmseg
from mmguard.hooks import LabelGuardHook

LOSSES = ('GuardedCrossEntropyLoss', 'GuardedLoss')


def register_all() -> None:
    """Registers transforms and hooks in mmengine's root, losses in the root and in every scope that is there.

    A registry that is asked with its own scope (``mmseg.GuardedLoss`` inside an mmseg config) does not look in its
    parent, so the losses stand in each.
    """
    HOOKS.register_module(module=LabelGuardHook, force=True)
    if importlib.util.find_spec('mmcv') is not None:
        from mmguard.transforms import GuardSegLabels

        TRANSFORMS.register_module(module=GuardSegLabels, force=True)
    _register_losses(MODELS, mmguard.losses)
    for scope, losses in (('mmseg', mmguard.losses.mmseg), ('mmdet', mmguard.losses.mmdet)):
        registry = _models_of(scope)
        if registry is not None:
            _register_losses(registry, losses)


def _register_losses(registry: Registry, losses: Any) -> None:
    for name in LOSSES:
        registry.register_module(name=name, module=getattr(losses, name), force=True)


def _models_of(package: str) -> Optional[Registry]:
    if importlib.util.find_spec(package) is None:
        return None
    try:
        return importlib.import_module(f'{package}.registry').MODELS
    except Exception as error:  # an install that does not import must not take the other framework down
        message = f'mmguard: {package} is installed but cannot be imported ({error}); its losses are not guarded'
        warnings.warn(message, stacklevel=2)
        return None
