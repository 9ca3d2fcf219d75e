"""Guards of stock losses: one class per kind of loss, found by the name of the loss's class.

Imports no framework, and nothing above :mod:`mmguard.functional`.
"""

from __future__ import annotations

from typing import Dict, List, Type

from torch import nn

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

#: Refused only because another registered class guards it.
USE_OWN_CLASS_REASON = (
    "it has a guarded class of its own, which also corrects its own faults. Write type='GuardedCrossEntropyLoss' "
    'with the same arguments'
)
_NO_LABELS_REASON = 'its target does not hold class labels, so no label can be out of range. Use it as it is'
_BOXES_REASON = (
    'its targets are boxes or distances, not class labels. Use it as it is and guard the classification loss'
)
_IDENTITIES_REASON = (
    'it compares identities or pairs with each other, and any integer is a valid identity. Use it as it is'
)

#: Losses of mmdet without class labels.
_OF_MMDET = {
    _BOXES_REASON: (
        'BalancedL1Loss',
        'BoundedIoULoss',
        'CIoULoss',
        'DIoULoss',
        'DistributionFocalLoss',
        'EIoULoss',
        'GHMR',
        'GIoULoss',
        'IoULoss',
        'L1Loss',
        'MSELoss',
        'SIoULoss',
        'SmoothL1Loss',
    ),
    _NO_LABELS_REASON: ('KnowledgeDistillationKLDivLoss',),
    _IDENTITIES_REASON: ('AssociativeEmbeddingLoss', 'L2Loss', 'MarginL2Loss', 'TripletLoss'),
    'it builds a classification loss of its own. Guard that one: write its loss_cls as GuardedLoss': ('DDQAuxLoss',),
}

REASONS = {
    'mmseg.CrossEntropyLoss': USE_OWN_CLASS_REASON,
    'mmdet.CrossEntropyLoss': USE_OWN_CLASS_REASON,
    'mmseg.HuasdorffDisstanceLoss': (
        'it sets ignored pixels to class 0 and trains on them, so an invalid pixel would be trained as class 0. '
        'Sanitize the labels in the pipeline with GuardSegLabels, or use another loss'
    ),
    'mmseg.KLDivLoss': _NO_LABELS_REASON,
    'mmseg.SiLogLoss': _NO_LABELS_REASON,
    **{f'mmdet.{name}': reason for reason, names in _OF_MMDET.items() for name in names},
}


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
        TypeError: No guard can keep the contract for this loss.
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
        f'so it cannot be configured to leave labels out. Sanitize the labels before it, with GuardSegLabels '
        f'(or GuardInstanceLabels) in the pipeline, and use the loss as it is'
    )


__all__ = ['GUARDS', 'GUARD_BY_NAME', 'REASONS', 'LossGuard', 'build_guard']
