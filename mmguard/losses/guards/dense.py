"""Losses of mmdet whose targets are dense: no label in them can be out of range."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from mmguard.losses.guards.base import LossGuard


class DenseGuard(LossGuard):
    """Hands everything through."""

    serves = (
        'mmdet.VarifocalLoss',
        'mmdet.DiceLoss',
        'mmdet.GaussianFocalLoss',
        'mmdet.MultiPosCrossEntropyLoss',
    )

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        return True
