"""Sanitizing of label tensors without a host synchronisation."""

from __future__ import annotations

from typing import NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from mmguard.labels.errors import LabelGuardError
from mmguard.labels.space import invalid_label_error
from mmguard.labels.tally import Tally


class Sanitized(NamedTuple):
    """What ``sanitize_target`` returns.

    Attributes:
        target (Tensor): int64, the shape of the input, every element a class in ``[0, num_classes)``, or the
            background ``num_classes`` where that is a label.
        keep (Tensor): bool, the same shape: takes part in the loss. Elsewhere ``target`` is merely harmless.
        invalid (Tensor): bool, the same shape: was neither a class nor ``ignore_index``.
        ignored (Tensor): bool, the same shape: equal to ``ignore_index`` (with ``'clip'``: after clamping).
        counts (Tensor): int64, shape (3,): elements seen, skipped and remapped, on the device of the input.
    """

    target: Tensor
    keep: Tensor
    invalid: Tensor
    ignored: Tensor
    counts: Tensor


def sanitize_target(
    target: Tensor,
    num_classes: int,
    ignore_index: Optional[int] = -100,
    on_invalid: str = 'ignore',
    background: bool = False,
) -> Sanitized:
    """Gives every element a harmless value and counts what was invalid.

    Args:
        target (Tensor): Integer labels of any shape.
        num_classes (int): Valid classes are ``[0, num_classes)``.
        ignore_index (int, optional): The label that takes no part in the loss. ``None``: there is none.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'`` (which synchronises).
        background (bool): Whether ``num_classes`` is a label too, the background, as in detection.

    Raises:
        LabelGuardError: An invalid label, with ``on_invalid='raise'``.

    Example:
        >>> sanitized = sanitize_target(torch.tensor([0, 7, 255, 2]), num_classes=3, ignore_index=255)
        >>> sanitized.target.tolist(), sanitized.keep.tolist(), sanitized.counts.tolist()
        ([0, 2, 2, 2], [True, False, False, True], [4, 1, 0])
        >>> sanitize_target(torch.tensor([0, 7, 255, 2]), 3, 255, on_invalid='clip').keep.tolist()
        [True, True, False, True]
        >>> sanitize_target(torch.tensor([0, 4, 3]), 3, None, on_invalid='clip', background=True).target.tolist()
        [0, 2, 3]
    """
    target = target.long()
    labels = num_classes + background
    clamped = target.clamp(0, labels - 1)
    is_label = clamped == target
    ignored = torch.zeros_like(is_label) if ignore_index is None else target == ignore_index
    ignore_is_label = ignore_index is None or 0 <= ignore_index < labels
    invalid = ~is_label if ignore_is_label else ~(is_label | ignored)
    if on_invalid == 'raise':
        raise_if_invalid(target, invalid, labels, ignore_index)
    if on_invalid == 'clip':
        if background:  # clipping leads into the classes, not to the background, which is one more than the last
            clamped = torch.where(invalid, clamped.clamp(max=num_classes - 1), clamped)
        if ignore_is_label and ignore_index is not None:
            ignored = clamped == ignore_index  # a clamped label may land on the ignored class
        keep = ~ignored
    else:
        keep = is_label & ~ignored if ignore_is_label else is_label
    return Sanitized(clamped, keep, invalid, ignored, count(invalid, on_invalid))


def count(invalid: Tensor, on_invalid: str) -> Tensor:
    """int64 (3,): elements seen, skipped, remapped."""
    number = invalid.sum()
    none = torch.zeros_like(number)
    # torch.full on the device, not a tensor made of a Python number: the latter is a blocking copy on CUDA.
    seen = torch.full_like(number, invalid.numel())
    return torch.stack((seen, none, number) if on_invalid == 'clip' else (seen, number, none))


def raise_if_invalid(target: Tensor, invalid: Tensor, num_classes: int, ignore_index: Optional[int]) -> None:
    """Raises ``LabelGuardError`` where ``invalid`` holds anything (synchronises: a debugging mode)."""
    if not invalid.any():
        return
    values, numbers = target[invalid].unique(return_counts=True)
    tally = Tally(
        total=target.numel(),
        skipped=int(numbers.sum()),
        values={int(v): int(n) for v, n in zip(values.tolist(), numbers.tolist())},
    )
    positions = [tuple(row) for row in invalid.nonzero()[:5].tolist()]
    raise invalid_label_error(tally, positions, num_classes, ignore_index)


def raise_if_outside_unit(target: Tensor, invalid: Tensor) -> None:
    """The same for dense binary targets, which must lie in [0, 1]."""
    if not invalid.any():
        return
    found = target[invalid]
    positions = [tuple(row) for row in invalid.nonzero()[:5].tolist()]
    raise LabelGuardError(
        f'{found.numel():,} of {target.numel():,} binary targets are invalid, between {found.min().item():g} and '
        f'{found.max().item():g}; first at {", ".join(map(str, positions))}. A sigmoid target of the shape of the '
        f'scores must lie in [0, 1]',
        [Tally(total=target.numel(), skipped=found.numel())],
        positions,
    )


def kept_and_counted(invalid: Tensor, counts_for_factor: Tensor) -> Tuple[Tensor, Tensor]:
    """How many of the elements that an ``avg_factor`` counts are valid, and how many there are."""
    return (counts_for_factor & ~invalid).sum(), counts_for_factor.sum()
