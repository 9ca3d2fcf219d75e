"""Mending of class indices for PyTorch's own loss: as few passes over the target as will do."""

from __future__ import annotations

from typing import NamedTuple, Optional

import torch
from torch import Tensor

from mmguard.functional.mend import raise_if_invalid


class ClassTarget(NamedTuple):
    """What ``mend_class_target`` returns.

    Attributes:
        target (Tensor): int64, the shape of the input: a class in ``[0, num_classes)``, or ``num_classes`` for what
            takes no part, to be passed to PyTorch as ``ignore_index``.
        kept (Tensor): int64, 0-d: how many elements take part.
        counts (Tensor, optional): int64, shape (3,): elements seen, skipped, remapped; ``None`` where nobody asked.
    """

    target: Tensor
    kept: Tensor
    counts: Optional[Tensor]


def mend_class_target(
    target: Tensor, num_classes: int, ignore_index: int, on_invalid: str, counted: bool
) -> ClassTarget:
    """Turns invalid and ignored labels into one value that PyTorch ignores.

    :func:`~mmguard.functional.mend_target` says the same in masks, which the losses of the frameworks need. Beside
    ``F.cross_entropy`` every pass over the target can be measured, so there are four here, and two more to count.

    Args:
        target (Tensor): Labels of any integer dtype and shape.
        num_classes (int): Valid classes are ``[0, num_classes)``.
        ignore_index (int): The label that takes no part in the loss; it may be one of the classes.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'`` (which synchronises).
        counted (bool): Whether the counts are wanted.

    Raises:
        LabelGuardError: An invalid label, with ``on_invalid='raise'``.

    Example:
        >>> mended = mend_class_target(torch.tensor([0, 7, 255, 2]), 3, 255, 'ignore', counted=True)
        >>> mended.target.tolist(), mended.kept.item(), mended.counts.tolist()
        ([0, 3, 3, 2], 2, [4, 1, 0])
    """
    target = target.long()
    clamped = target.clamp(0, num_classes - 1)
    is_class = clamped == target
    ignore_is_class = 0 <= ignore_index < num_classes
    if on_invalid == 'raise':
        invalid = ~is_class if ignore_is_class else ~is_class & (target != ignore_index)
        raise_if_invalid(target, invalid, num_classes, ignore_index)
    if on_invalid == 'clip':
        # A clamped label may land on the ignored class.
        takes_part = (clamped if ignore_is_class else target) != ignore_index
    else:
        takes_part = is_class & (target != ignore_index) if ignore_is_class else is_class
    counts = _count(target, is_class, None if ignore_is_class else ignore_index, on_invalid) if counted else None
    return ClassTarget(torch.where(takes_part, clamped, num_classes), takes_part.count_nonzero(), counts)


def _count(target: Tensor, is_class: Tensor, ignored_value: Optional[int], on_invalid: str) -> Tensor:
    valid = is_class.count_nonzero()
    if ignored_value is not None:
        valid = valid + (target == ignored_value).count_nonzero()
    seen, none = torch.full_like(valid, target.numel()), torch.zeros_like(valid)
    return torch.stack((seen, none, seen - valid) if on_invalid == 'clip' else (seen, seen - valid, none))
