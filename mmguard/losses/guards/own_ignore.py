"""Losses that leave out what carries their ignore value, and average over the rest."""

from __future__ import annotations

import inspect
from typing import Any

from torch import Tensor, nn

from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import LossGuard, mark


class OwnIgnoreGuard(LossGuard):
    """Puts the loss's own ignore value on invalid labels. Serves TverskyLoss and losses that mmguard does not know."""

    serves = ('mmseg.TverskyLoss',)

    def __init__(self, loss: nn.Module) -> None:
        super().__init__(loss)
        self._by_argument = 'ignore_index' in inspect.signature(loss.forward).parameters

    @staticmethod
    def can_serve(loss: nn.Module) -> bool:
        by_attribute = any(isinstance(getattr(loss, name, None), int) for name in ('ignore_index', 'ignore_label'))
        return by_attribute or 'ignore_index' in inspect.signature(loss.forward).parameters

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        if not sanitized.target.numel():
            return pred.sum()  # of nothing; not every loss can take an empty batch
        ignore_index = self.ignore_index
        if self._by_argument:
            if 0 <= ignore_index < num_classes:
                ignore_index = num_classes  # what is left of the labels may be of that class
            kwargs['ignore_index'] = ignore_index
        return self.loss(pred, mark(sanitized, ignore_index), *args, **kwargs)
