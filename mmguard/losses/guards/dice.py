"""mmseg's DiceLoss: a ratio of sums over all pixels."""

from __future__ import annotations

import copy
from math import inf
from typing import Any

from torch import Tensor

from mmguard.functional.sanitize import Sanitized
from mmguard.losses.guards.base import LossGuard, mark, scores_where, skipped_of


class DiceGuard(LossGuard):
    """Takes probability and target of an invalid pixel out of the sums.

    The stock loss has a target of zeros on ignored pixels but keeps their probabilities in the denominator; that
    stays as it is. Deleting an invalid pixel means to take both out, which must happen after the activation.
    """

    serves = ('mmseg.DiceLoss',)

    @property
    def ignore_index(self) -> int:
        # Its `ignore_index` names a channel to leave out, but every label beyond the classes gets a row of zeros.
        own = self.loss.ignore_index
        return 255 if own is None else int(own)

    def is_dense(self, pred: Tensor, label: Tensor) -> bool:
        return pred.shape == label.shape

    def num_classes(self, pred: Tensor) -> int:
        return max(pred.shape[1], 2)

    def blank(self, pred: Tensor, sanitized: Sanitized) -> Tensor:
        # Sigmoid makes exactly 0 of it, softmax cannot.
        otherwise = -inf if self.loss.activate and self.loss.use_sigmoid else 0
        return scores_where(~skipped_of(sanitized).unsqueeze(1), pred, otherwise)

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        if self.loss.activate:
            if self.loss.use_sigmoid:
                pred = pred.sigmoid()
            elif pred.shape[1] != 1:
                pred = scores_where(~skipped_of(sanitized).unsqueeze(1), pred.softmax(dim=1))
        on_probabilities: Any = copy.copy(self.loss)
        on_probabilities.activate = False
        # A label beyond the channels becomes a row of zeros.
        target = mark(sanitized, max(num_classes, pred.shape[1]))
        return on_probabilities(pred, target, *args, **kwargs)
