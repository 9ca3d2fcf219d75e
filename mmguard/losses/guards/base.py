"""Base of the guards of stock losses."""

from __future__ import annotations

from typing import Any, ClassVar, Tuple

import torch
from torch import Tensor, nn

from mmguard.functional.format import Sanitized
from mmguard.functional.validate import OPENMMLAB, validate_class_target


class LossGuard:
    """Guard that calls one kind of stock loss so that excluded elements do not affect it."""

    #: ``package.Class`` of the stock losses that this class guards.
    serves: ClassVar[Tuple[str, ...]] = ()
    #: True if ``num_classes`` is a valid label, too: the background.
    background: bool = False

    def __init__(self, loss: nn.Module) -> None:
        self.loss: Any = loss

    @property
    def ignore_index(self) -> int:
        """The label that the stock loss ignores by itself; 255 if it has no such attribute."""
        for name in ('ignore_index', 'ignore_label'):
            value = getattr(self.loss, name, None)
            if value is not None:
                return int(value)
        return 255

    def is_dense(self, pred: Tensor, target: Any) -> bool:
        """Return True if ``target`` holds dense targets, which pass through because they are not used as indices."""
        return False

    def split_target(self, target: Any) -> Tuple[Tensor, Tuple[Any, ...]]:
        """Split a target into the labels and its other parts, e.g. qualities."""
        return target, ()

    def check(self, pred: Tensor, label: Tensor, *others: Any) -> None:
        validate_class_target(pred, label, OPENMMLAB)

    def num_classes(self, pred: Tensor) -> int:
        """Return the number of classes that the scores distinguish."""
        return pred.shape[1]

    def blank_scores(self, pred: Tensor, sanitized: Sanitized) -> Tensor:
        """Set the scores of excluded elements to 0, so that NaN or inf do not reach the loss or the gradient."""
        keep = sanitized.keep
        return select_scores(keep.reshape(pred.shape) if keep.numel() == pred.numel() else keep.unsqueeze(1), pred)

    def __call__(self, pred: Tensor, sanitized: Sanitized, num_classes: int, *args: Any, **kwargs: Any) -> Tensor:
        """Call the stock loss; ``args`` are the other parts of the target, then the caller's other arguments."""
        raise TypeError(f'{type(self).__name__} must define __call__()')


def select_scores(keep: Tensor, pred: Tensor, fill: float = 0) -> Tensor:
    """Return the scores with ``fill`` where ``keep`` is False, in one pass (``masked_fill`` would copy first)."""
    # Contiguous, like the result of masked_fill: stock losses flatten with view().
    return torch.where(keep, pred, pred.new_full((), fill)).contiguous()


def mark(sanitized: Sanitized, ignore_index: int) -> Tensor:
    """Return the labels with ``ignore_index`` in place of excluded elements."""
    return sanitized.target.masked_fill(~sanitized.keep, ignore_index)
