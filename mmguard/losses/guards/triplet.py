"""mmdet's TripletLoss, which compares images by their identities."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mmguard.functional.sanitize import Sanitized
from mmguard.labels.images import NO_LABEL
from mmguard.losses.guards.base import LossGuard


class TripletGuard(LossGuard):
    """Images without an identity are deleted: no label could be left out, as all that have it would be one person.

    Where no two identities are left, nothing is compared, and the loss is 0.
    """

    serves = ('mmdet.TripletLoss',)

    @property
    def ignore_index(self) -> int:
        return NO_LABEL

    def num_classes(self, pred: Tensor) -> int:
        """Features tell no classes apart: any integer from 0 on may be an identity."""
        return torch.iinfo(torch.int64).max

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        keep = sanitized.keep
        identities = sanitized.target[keep]
        if not keep.all() and len(identities.unique()) < 2:
            return pred.sum() * 0
        return self.loss(pred[keep], identities, *args, **kwargs)
