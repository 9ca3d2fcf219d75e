"""Which losses are guarded, and how: the one answer for a config (``apply``) and for a built model."""

from __future__ import annotations

import inspect
from typing import NamedTuple

from mmguard.config.classes import FRAMEWORK_OF, SCOPES
from mmguard.losses.guards import GUARD_BY_NAME, REASONS
from mmguard.losses.guards.dense import DenseGuard
from mmguard.losses.guards.refused import USE_OWN_CLASS

#: Arguments and attributes of heads whose loss takes no class labels, whatever its type.
WITHOUT_CLASSES = ('loss_centerness',)
#: Heads that compute the classification loss themselves, from labels as they are: a ``loss_cls`` is never called.
HEADS_WITHOUT_LOSS = ('SSDHead', 'FreeAnchorRetinaHead', 'FreeAnchor3DHead', 'AutoAssignHead')
#: Losses of mmseg whose target can hold no class labels.
_NO_LABELS = ('mmseg.KLDivLoss', 'mmseg.SiLogLoss')


class Selection(NamedTuple):
    """How a loss is guarded.

    Attributes:
        is_cross_entropy (bool): True if it is replaced by GuardedCrossEntropyLoss.
        is_wrapped (bool): True if a GuardedLoss around it may guard it.
        framework (str): The scope of the guard: ``'mmseg'``, ``'mmdet'`` or ``'mmpretrain'``.
        reason (str): Why it stays as it is; empty if labels cannot hurt it.
    """

    is_cross_entropy: bool
    is_wrapped: bool
    framework: str
    reason: str = ''


def select(cls: type, scope: str = '') -> Selection:
    """Decide how a loss of a class is guarded.

    Args:
        cls (type): Class of the loss.
        scope (str): The scope that it is built in, where its own package is none of a framework's.
    """
    names = [f'{base.__module__.partition(".")[0]}.{base.__name__}' for base in inspect.getmro(cls)]
    package, _, name = names[0].partition('.')
    framework = FRAMEWORK_OF.get(package) or FRAMEWORK_OF.get(scope, 'mmseg')
    if name == 'CrossEntropyLoss' and package in SCOPES:
        return Selection(True, False, framework)
    known = next((one for one in names if one in REASONS or one in GUARD_BY_NAME), None)
    if known in REASONS and REASONS[known] is not USE_OWN_CLASS:
        is_harmful = FRAMEWORK_OF.get(package, 'mmseg') == 'mmseg' and known not in _NO_LABELS
        return Selection(False, False, framework, REASONS[known] if is_harmful else '')
    is_dense = known is not None and GUARD_BY_NAME.get(known) is DenseGuard
    return Selection(False, not is_dense, framework)
