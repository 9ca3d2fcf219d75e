"""Sanitizing of label tensors without a host synchronization."""

from __future__ import annotations

import math
from typing import NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.reduction import sum_float32
from mmguard.labels.rules import build_label_error
from mmguard.labels.tally import LabelGuardError, Tally


class Sanitized(NamedTuple):
    """Result of ``sanitize_target``.

    Attributes:
        target (Tensor): int64, the shape of the input, every element a class in ``[0, num_classes)``, or the
            background ``num_classes`` if that is a label.
        keep (Tensor): bool, the same shape: True for elements in the loss; the others have a harmless ``target``.
        invalid (Tensor): bool, the same shape: was neither a class nor ``ignore_index``.
        ignored (Tensor): bool, the same shape: equal to ``ignore_index`` (with ``'clip'``: after clamping).
        counts (Tensor): int64, shape (3,): elements seen, skipped and remapped, on the device of the input.
        skipped (Tensor): bool, the same shape: True for elements that are excluded because they were invalid.
    """

    target: Tensor
    keep: Tensor
    invalid: Tensor
    ignored: Tensor
    counts: Tensor
    skipped: Tensor


def sanitize_target(
    target: Tensor,
    num_classes: int,
    ignore_index: Optional[int] = -100,
    on_invalid: str = 'ignore',
    background: bool = False,
) -> Sanitized:
    """Give every element a harmless value and count the invalid ones.

    Args:
        target (Tensor): Integer labels of any shape.
        num_classes (int): Valid classes are ``[0, num_classes)``.
        ignore_index (int, optional): The label that is excluded from the loss. ``None``: no such label.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'`` (which synchronizes).
        background (bool): True if ``num_classes`` is a label too, the background, as in detection.

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
        return Sanitized(clamped, keep, invalid, ignored, count(invalid, on_invalid), invalid & ignored)
    keep = is_label & ~ignored if ignore_is_label and ignore_index is not None else is_label
    return Sanitized(clamped, keep, invalid, ignored, count(invalid, on_invalid), invalid)


def count(invalid: Tensor, on_invalid: str) -> Tensor:
    """Count the elements seen, skipped and remapped: int64 (3,)."""
    number = invalid.sum()
    none = torch.zeros_like(number)
    # torch.full on the device, since a tensor from a Python number is a blocking copy on CUDA.
    seen = torch.full_like(number, invalid.numel())
    return torch.stack((seen, none, number) if on_invalid == 'clip' else (seen, number, none))


def raise_if_invalid(target: Tensor, invalid: Tensor, num_classes: int, ignore_index: Optional[int]) -> None:
    """Raise ``LabelGuardError`` if ``invalid`` has any True. It synchronizes, so it is for debugging."""
    if not invalid.any():
        return
    values, numbers = target[invalid].unique(return_counts=True)
    tally = Tally(
        total=target.numel(),
        skipped=int(numbers.sum()),
        values={int(v): int(n) for v, n in zip(values.tolist(), numbers.tolist())},
    )
    positions = [tuple(row) for row in invalid.nonzero()[:5].tolist()]
    raise build_label_error(tally, positions, num_classes, ignore_index)


def raise_if_outside_unit(target: Tensor, invalid: Tensor) -> None:
    """Raise like :func:`raise_if_invalid`, for dense binary targets, which must be in [0, 1]."""
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


def count_for_factor(invalid: Tensor, counts_for_factor: Tensor) -> Tuple[Tensor, Tensor]:
    """Count the elements that an ``avg_factor`` includes: the valid ones, and all of them."""
    return (counts_for_factor & ~invalid).sum(), counts_for_factor.sum()


#: Score whose sigmoid is exactly 1 in every dtype; that of ``-CERTAIN`` is exactly 0.
CERTAIN = 1e4


class BinaryTarget(NamedTuple):
    """Result of ``sanitize_binary_target``; all have the shape of the input.

    Attributes:
        target (Tensor): In [0, 1], of the requested dtype; 0 for excluded elements.
        keep (Tensor): bool: True for elements in the loss.
        invalid (Tensor): bool: was neither in [0, 1] nor ``ignore_index``.
        ignored (Tensor): bool: equal to ``ignore_index``.
        counts (Tensor): int64, shape (3,): elements seen, skipped and remapped.
    """

    target: Tensor
    keep: Tensor
    invalid: Tensor
    ignored: Tensor
    counts: Tensor


def sanitize_binary_target(
    target: Tensor, dtype: torch.dtype, ignore_index: Optional[float], on_invalid: str
) -> BinaryTarget:
    """Exclude values, including NaN, that are neither in [0, 1] (up to rounding) nor ignored.

    Args:
        target (Tensor): Any dtype.
        dtype (torch.dtype): Of the sanitized target.
        ignore_index (float, optional): The value that is excluded; it may be NaN. ``None``: no such value.
        on_invalid (str): ``'ignore'``, ``'clip'`` (clamped; NaN becomes 0) or ``'raise'`` (which synchronizes).

    Raises:
        LabelGuardError: An invalid target, with ``on_invalid='raise'``.

    Example:
        >>> sanitized = sanitize_binary_target(torch.tensor([0.0, 1.0, 255.0, -1.0]), torch.float32, -1, 'ignore')
        >>> sanitized.target.tolist(), sanitized.keep.tolist(), sanitized.counts.tolist()
        ([0.0, 1.0, 0.0, 0.0], [True, True, False, False], [4, 1, 0])
    """
    if ignore_index is None:
        ignored = torch.zeros_like(target, dtype=torch.bool)
    else:
        ignored = target.isnan() if math.isnan(ignore_index) else target == ignore_index
    # Soft targets (IoU, sampled masks) may exceed 1 by rounding. NaN fails both comparisons.
    highest = 1 + 4 * torch.finfo(target.dtype).eps if target.is_floating_point() else 1
    invalid = ~((target >= 0) & (target <= highest)) & ~ignored
    if on_invalid == 'raise':
        raise_if_outside_unit(target, invalid)
    values, keep = target.to(dtype), ~(invalid | ignored)
    if on_invalid == 'clip':
        values, keep = torch.where(invalid, values.nan_to_num(0.0).clamp(0, 1), values), ~ignored
    return BinaryTarget(values.masked_fill(~keep, 0), keep, invalid, ignored, count(invalid, on_invalid))


def mask_scores(logits: Tensor, keep: Tensor) -> Tensor:
    """Replace the score of each excluded element by a certain "no", whose target is 0.

    Its binary cross entropy is exactly 0, and so is its gradient, whatever the scores hold.
    """
    return logits.masked_fill(~keep, -CERTAIN)


#: Values that are counted individually: those of 8-bit maps, off-by-one labels and negative marks. Others are rare.
LOWEST, HIGHEST = -256, 1023
#: Number of tables that are filled in parallel.
LANES = 16


def is_in_table(value: int) -> bool:
    """Return True if a value is counted individually."""
    return LOWEST <= value <= HIGHEST


def count_values(label: Tensor) -> Tensor:
    """Count each value from ``LOWEST`` to ``HIGHEST``: int64, shape (1280,).

    Example:
        >>> count_values(torch.tensor([0, 11, -1, 11, 99999]))[-LOWEST + 11].item()
        2
    """
    label = label.detach().long().reshape(-1, label.shape[-1] if label.dim() and label.numel() else 1)
    # Values outside of the table go to a slot at either end, which is cut off.
    width = HIGHEST - LOWEST + 3
    # On a GPU additions to one address wait for each other, and most labels belong to few classes.
    lanes = torch.arange(label.shape[1], device=label.device).remainder_(LANES).mul_(width)
    slots = label.clamp(LOWEST - 1, HIGHEST + 1).add_(lanes.sub_(LOWEST - 1)).flatten()
    ones = torch.ones((), dtype=torch.int64, device=label.device).expand(slots.shape)
    empty = torch.zeros(LANES * width, dtype=torch.int64, device=label.device)
    return empty.index_add(0, slots, ones).view(LANES, width).sum(0)[1:-1]


def read_tally(counts: Tensor) -> Tally:
    """Read running counts: elements seen, skipped and remapped, then the table of invalid values, if any.

    Example:
        >>> read_tally(torch.cat((torch.tensor([6, 3, 0]), count_values(torch.tensor([11, 11])))))
        Tally(total=6, skipped=3, remapped=0, values={11: 2}, source=None, reasons={}, mapped=0, other_values=1)
    """
    total, skipped, remapped, *table = counts.tolist()
    values = {LOWEST + place: count for place, count in enumerate(table) if count}
    others = skipped + remapped - sum(values.values()) if table else 0
    return Tally(total=total, skipped=skipped, remapped=remapped, values=values, other_values=others)


class ClassTarget(NamedTuple):
    """Result of ``sanitize_class_target``.

    Attributes:
        target (Tensor): int64, the shape of the input: a class in ``[0, num_classes)``, or ``num_classes`` for what
            is excluded, to be passed to PyTorch as ``ignore_index``.
        given (Tensor): The input, int64.
        num_classes, ignore_index (int), on_invalid (str): As given.
    """

    target: Tensor
    given: Tensor
    num_classes: int
    ignore_index: int
    on_invalid: str

    def count_kept(self) -> Tensor:
        """Count the elements in the loss: int64, 0-d."""
        return (self.target < self.num_classes).count_nonzero()

    def count_ignored(self) -> Tensor:
        """Count the elements equal to ``ignore_index``: int64, 0-d; with ``'clip'`` after clamping."""
        return self.find_ignored().count_nonzero()

    def find_ignored(self) -> Tensor:
        """Find the elements that :meth:`count_ignored` counts: bool, the shape of the input."""
        return self.target == self.num_classes if self.on_invalid == 'clip' else self.given == self.ignore_index

    def find_invalid(self) -> Tensor:
        """Find elements that are neither a class nor ``ignore_index``: bool, the shape of the input."""
        outside = self.given.clamp(0, self.num_classes - 1) != self.given
        ignores_class = 0 <= self.ignore_index < self.num_classes
        return outside if ignores_class else outside & (self.given != self.ignore_index)

    def counts(self, kept: Tensor, ignored: Tensor) -> Tensor:
        """Return the numbers of elements seen, skipped and remapped: int64, shape (3,).

        Args:
            kept, ignored (Tensor): Results of :meth:`count_kept` and :meth:`count_ignored`, which each cost a pass.
        """
        none, seen = torch.zeros_like(kept), torch.full_like(kept, self.given.numel())
        if self.on_invalid == 'clip':
            return torch.stack((seen, none, self.find_invalid().count_nonzero()))
        return torch.stack((seen, seen - ignored - kept, none))

    def count_by_value(self) -> Tuple[Tensor, Tensor]:
        """Return :meth:`count_kept`, and :meth:`counts` followed by a table of the invalid values.

        The table also gives the numbers of kept and ignored elements, if it covers their values.
        """
        table, ignored_at = count_values(self.given), self.ignore_index - LOWEST
        classes = table[-LOWEST : self.num_classes - LOWEST]
        if self.on_invalid != 'clip' and is_in_table(self.num_classes) and is_in_table(self.ignore_index):
            ignored = table[ignored_at].clone()
            kept = classes.sum() - ignored if 0 <= self.ignore_index < self.num_classes else classes.sum()
        else:
            kept, ignored = self.count_kept(), self.count_ignored()
        classes.zero_()
        if is_in_table(self.ignore_index):
            table[ignored_at].zero_()
        return kept, torch.cat((self.counts(kept, ignored), table))

    def look_up_weights(self, class_weight: Tensor) -> Tensor:
        """Look up the class weight (C,) of each element; 0 for an excluded one."""
        padded = F.pad(class_weight.detach(), (0, 1))  # the class after the last one is excluded
        return padded.index_select(0, self.target.flatten()).view_as(self.target)

    def weight(self, class_weight: Tensor) -> Tensor:
        """Sum the class weights of the elements in the loss: 0-d, float32 for half precision."""
        return sum_float32(self.look_up_weights(class_weight))


def sanitize_class_target(target: Tensor, num_classes: int, ignore_index: int, on_invalid: str) -> ClassTarget:
    """Turn invalid and ignored labels into one value that PyTorch ignores.

    :func:`~mmguard.functional.sanitize_target` returns the same as masks, which other losses need. Next to
    ``F.cross_entropy`` every pass over the target is measurable, so this one takes two.

    Args:
        target (Tensor): Labels of any integer dtype and shape.
        num_classes (int): Valid classes are ``[0, num_classes)``.
        ignore_index (int): The label that is excluded from the loss; it may be one of the classes.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'`` (which synchronizes).

    Raises:
        LabelGuardError: An invalid label, with ``on_invalid='raise'``.

    Example:
        >>> sanitized = sanitize_class_target(torch.tensor([0, 7, 255, 2]), 3, 255, 'ignore')
        >>> sanitized.target.tolist(), sanitized.counts(sanitized.count_kept(), sanitized.count_ignored()).tolist()
        ([0, 3, 3, 2], [4, 1, 0])
    """
    given = target.long()
    if on_invalid == 'clip':
        target = given.clamp(0, num_classes - 1)
    else:
        target = F.threshold(given, -1, num_classes).clamp_(max=num_classes)  # negative ones first
    if 0 <= ignore_index < num_classes:
        target.masked_fill_(target == ignore_index, num_classes)  # clamping may produce it
    elif on_invalid == 'clip':
        target.masked_fill_(given == ignore_index, num_classes)
    sanitized = ClassTarget(target, given, num_classes, ignore_index, on_invalid)
    if on_invalid == 'raise':
        raise_if_invalid(given, sanitized.find_invalid(), num_classes, ignore_index)
    return sanitized
