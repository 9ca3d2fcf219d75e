"""Guards of stock losses: one class per kind of loss, looked up by the class name of the loss.

Does not import a framework, or anything above :mod:`mmguard.functional`.
"""

from __future__ import annotations

from typing import Dict, List, Type

from torch import nn

from mmguard.labels.loss_selection import REASONS
from mmguard.losses.guards.base import LossGuard
from mmguard.losses.guards.mmdet import (
    CrossEntropyCustomGuard,
    DenseGuard,
    EQLV2Guard,
    FocalDetectionGuard,
    GHMGuard,
    QualityFocalGuard,
    SeesawGuard,
)
from mmguard.losses.guards.mmseg import BoundaryGuard, DiceGuard, FocalGuard, LovaszGuard, OhemGuard, OwnIgnoreGuard

GUARDS: List[Type[LossGuard]] = [
    # mmseg's
    OhemGuard,
    FocalGuard,
    DiceGuard,
    LovaszGuard,
    BoundaryGuard,
    OwnIgnoreGuard,
    # mmdet's
    FocalDetectionGuard,
    QualityFocalGuard,
    GHMGuard,
    SeesawGuard,
    EQLV2Guard,
    CrossEntropyCustomGuard,
    DenseGuard,
]

#: ``'scope.Class'`` of a stock loss -> its guard.
GUARD_BY_NAME: Dict[str, Type[LossGuard]] = {name: guard for guard in GUARDS for name in guard.serves}


def build_guard(loss: nn.Module) -> LossGuard:
    """Create the guard of a loss.

    Raises:
        TypeError: This loss cannot be guarded; the message says why.
    """
    names = [f'{cls.__module__.split(".")[0]}.{cls.__name__}' for cls in type(loss).__mro__]
    for name in names:
        if name in REASONS:
            raise TypeError(f'GuardedLoss cannot guard {name}: {REASONS[name]}')
        if name in GUARD_BY_NAME:
            return GUARD_BY_NAME[name](loss)
    if OwnIgnoreGuard.can_serve(loss):
        return OwnIgnoreGuard(loss)
    raise TypeError(
        f'GuardedLoss cannot guard {names[0]}: it has no attribute and no argument `ignore_index` (or `ignore_label`), '
        f'so it cannot exclude labels. Sanitize the labels with GuardSegLabels (or GuardInstanceLabels) in the '
        f'pipeline, and use the loss without GuardedLoss'
    )


__all__ = ['GUARDS', 'GUARD_BY_NAME', 'REASONS', 'LossGuard', 'build_guard']
