"""Mending of class indices for PyTorch's own loss: as few passes over the target as will do."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.mend import raise_if_invalid


class ClassTarget(NamedTuple):
    """What ``mend_class_target`` returns.

    Attributes:
        target (Tensor): int64, the shape of the input: a class in ``[0, num_classes)``, or ``num_classes`` for what
            takes no part, to be passed to PyTorch as ``ignore_index``.
        given (Tensor): The input, int64.
        num_classes, ignore_index (int), on_invalid (str): As given.
    """

    target: Tensor
    given: Tensor
    num_classes: int
    ignore_index: int
    on_invalid: str

    def kept(self) -> Tensor:
        """int64, 0-d: how many elements take part."""
        # Each element adds the last class, one that takes no part adds 1 more.
        return self.target.numel() * self.num_classes - self.target.clamp(min=self.num_classes - 1).sum()

    def counts(self) -> Tensor:
        """int64, shape (3,): elements seen, skipped, remapped."""
        seen = self.given.numel()
        ignored = seen - (self.given - self.ignore_index).count_nonzero()
        if self.on_invalid == 'clip':
            moved = self.given.clamp(0, self.num_classes - 1).bitwise_xor_(self.given).count_nonzero()
            invalid = moved if 0 <= self.ignore_index < self.num_classes else moved - ignored
        else:
            invalid = seen - ignored - self.kept()
        none = torch.zeros_like(invalid)
        counts = (none, invalid) if self.on_invalid == 'clip' else (invalid, none)
        return torch.stack((torch.full_like(invalid, seen), *counts))


def mend_class_target(target: Tensor, num_classes: int, ignore_index: int, on_invalid: str) -> ClassTarget:
    """Turns invalid and ignored labels into one value that PyTorch ignores.

    :func:`~mmguard.functional.mend_target` says the same in masks, which the losses of the frameworks need. Beside
    ``F.cross_entropy`` every pass over the target can be measured, so it stays int64 throughout: on a CPU a comparison,
    which writes another dtype, takes four to ten times as long as a clamp.

    Args:
        target (Tensor): Labels of any integer dtype and shape.
        num_classes (int): Valid classes are ``[0, num_classes)``.
        ignore_index (int): The label that takes no part in the loss; it may be one of the classes.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'`` (which synchronises).

    Raises:
        LabelGuardError: An invalid label, with ``on_invalid='raise'``.

    Example:
        >>> mended = mend_class_target(torch.tensor([0, 7, 255, 2]), 3, 255, 'ignore')
        >>> mended.target.tolist(), mended.kept().item(), mended.counts().tolist()
        ([0, 3, 3, 2], 2, [4, 1, 0])
    """
    target = target.long()
    ignore_is_class = 0 <= ignore_index < num_classes
    if on_invalid == 'raise':
        invalid = target.clamp(0, num_classes - 1) != target
        raise_if_invalid(
            target, invalid if ignore_is_class else invalid & (target != ignore_index), num_classes, ignore_index
        )
    if on_invalid == 'clip':
        mended = target.clamp(0, num_classes - 1)
    else:
        mended = F.threshold(target, -1, num_classes).clamp_(max=num_classes)  # negative ones first
    if ignore_is_class:
        mended.masked_fill_(mended == ignore_index, num_classes)  # a label may have been clamped onto it
    elif on_invalid == 'clip':
        mended.masked_fill_(target == ignore_index, num_classes)
    return ClassTarget(mended, target, num_classes, ignore_index, on_invalid)
