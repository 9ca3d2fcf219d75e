"""The guarded losses of mmpretrain's scope."""

from __future__ import annotations

from typing import Any, Optional

from mmguard.losses.guarded_loss import GuardedLossBase


class GuardedLoss(GuardedLossBase):
    """:class:`~mmguard.losses.guarded_loss.GuardedLossBase`, building the inner loss in mmpretrain's scope."""

    scope = 'mmpretrain'


class GuardedCrossEntropyLoss(GuardedLoss):
    """mmpretrain's CrossEntropyLoss, safe against any label, and against any score that MixUp and CutMix make.

    With valid labels value and gradient are those of ``mmpretrain.CrossEntropyLoss``. Images without a valid label
    count as absent.

    Args:
        num_classes, ignore_index, on_invalid: Of :class:`~mmguard.losses.guarded_loss.GuardedLossBase`.
        arguments: Of ``mmpretrain.CrossEntropyLoss``.
    """

    def __init__(
        self,
        num_classes: Optional[int] = None,
        ignore_index: Optional[int] = None,
        on_invalid: str = 'ignore',
        **arguments: Any,
    ) -> None:
        super().__init__('CrossEntropyLoss', num_classes, ignore_index, on_invalid, **arguments)
