"""Second stage of a loss, which sanitizes the labels and marks excluded elements without a host synchronization."""

from __future__ import annotations

import math
from typing import Callable, NamedTuple, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.compat.torch_names import runs_triton
from mmguard.functional.update import HIGHEST, LOWEST, TABLE_FROM, build_counts, count_values, is_in_table
from mmguard.labels.rules import build_label_error
from mmguard.labels.tally import LabelGuardError, Tally


class Sanitized(NamedTuple):
    """Result of ``sanitize_target``; all tensors except ``valid`` have the shape of the input."""

    target: Tensor  #: int64: a class in ``[0, num_classes)``, or the background ``num_classes`` if that is a label.
    keep: Tensor  #: bool: True for elements in the loss; ``target`` of the others is any class that can be looked up.
    invalid: Tensor  #: bool: True for labels that are neither a class nor ``ignore_index``.
    ignored: Tensor  #: bool: True for labels equal to ``ignore_index``, with ``'clip'`` after clamping.
    valid: Tensor  #: int64, 0-d: number of elements whose label is a class or ``ignore_index``.
    skipped: Tensor  #: bool: True for elements that are excluded because their label is invalid.
    on_invalid: str  #: The argument of the call.

    @property
    def counts(self) -> Tensor:
        """Numbers of elements seen, skipped and remapped: int64, shape (3,), on the device of the input."""
        return build_counts(self.keep.numel(), self.valid, self.on_invalid)


def sanitize_target(
    target: Tensor,
    num_classes: int,
    ignore_index: Optional[int] = -100,
    on_invalid: str = 'ignore',
    background: bool = False,
) -> Sanitized:
    """Clamp labels to safe class indices, mark the elements to exclude from the loss, and count the invalid ones.

    Args:
        target (Tensor): Integer labels of any shape.
        num_classes (int): Valid classes are ``[0, num_classes)``.
        ignore_index (int, optional): The label that is excluded from the loss. If ``None``, no label is excluded.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'`` (which synchronizes).
        background (bool): True if ``num_classes`` is a valid label, too, and means background, as in detection.

    Raises:
        LabelGuardError: A label is invalid, and ``on_invalid`` is ``'raise'``.

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
    is_valid = is_label if ignore_is_label else is_label | ignored
    invalid, valid = ~is_valid, is_valid.sum()
    if on_invalid == 'raise':
        raise_if_invalid(target, invalid, labels, ignore_index)
    if on_invalid == 'clip':
        if background:  # clip to the last class, not to the background label num_classes
            clamped = torch.where(invalid, clamped.clamp(max=num_classes - 1), clamped)
        if ignore_is_label and ignore_index is not None:
            ignored = clamped == ignore_index  # a clamped label may land on the ignored class
        keep = ~ignored
        return Sanitized(clamped, keep, invalid, ignored, valid, invalid & ignored, on_invalid)
    keep = is_label & ~ignored if ignore_is_label and ignore_index is not None else is_label
    return Sanitized(clamped, keep, invalid, ignored, valid, invalid, on_invalid)


def raise_if_invalid(target: Tensor, invalid: Tensor, num_classes: int, ignore_index: Optional[int]) -> None:
    """Raise ``LabelGuardError`` if any element of ``invalid`` is True (for debugging: this waits for the device)."""
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
    """Raise ``LabelGuardError`` for dense binary targets if any element of ``invalid`` is True; wait for the device."""
    if not invalid.any():
        return
    found = target[invalid]
    positions = [tuple(row) for row in invalid.nonzero()[:5].tolist()]
    raise LabelGuardError(
        f'{found.numel():,} of {target.numel():,} binary targets are outside [0, 1] (from {found.min().item():g} to '
        f'{found.max().item():g}), first at {", ".join(map(str, positions))}. Targets of the shape of the scores must '
        f'be probabilities for a sigmoid loss',
        [Tally(total=target.numel(), skipped=found.numel())],
        positions,
    )


#: Score whose sigmoid is exactly 1 in every dtype; the sigmoid of ``-CERTAIN`` is exactly 0.
CERTAIN = 1e4


class BinaryTarget(NamedTuple):
    """Result of ``sanitize_binary_target``; all tensors except ``valid`` have the shape of the input."""

    target: Tensor  #: In [0, 1], of the requested dtype; 0 for excluded elements.
    excluded: Tensor  #: bool: True for elements that are not in the loss.
    is_valid: Tensor  #: bool: True for targets in [0, 1] or equal to ``ignore_index``.
    valid: Tensor  #: int64, 0-d: number of True elements in ``is_valid``.
    ignored: Optional[Tensor]  #: bool: True for targets equal to ``ignore_index``; ``None`` without ``ignore_index``.


def sanitize_binary_target(
    target: Tensor, dtype: torch.dtype, ignore_index: Optional[float], on_invalid: str
) -> BinaryTarget:
    """Exclude binary targets that are ignored or outside [0, 1] (up to rounding), including NaN.

    ``ignore_index`` may be NaN. ``on_invalid='clip'`` clamps invalid values and replaces NaN by 0; ``'raise'`` raises
    ``LabelGuardError``, and synchronizes.

    Example:
        >>> sanitized = sanitize_binary_target(torch.tensor([0.0, 1.0, 255.0, -1.0]), torch.float32, -1, 'ignore')
        >>> sanitized.target.tolist(), sanitized.excluded.tolist(), sanitized.valid.item()
        ([0.0, 1.0, 0.0, 0.0], [False, False, True, True], 3)
    """
    # Soft targets (IoU, sampled masks) may exceed 1 by rounding. NaN fails the comparison.
    highest = 1 + 4 * torch.finfo(target.dtype).eps if target.is_floating_point() else 1
    numbers = target.byte() if target.dtype == torch.bool else target
    is_valid, ignored = numbers.clamp(0, highest) == numbers, None
    keep = is_valid
    if ignore_index is not None:
        ignored = target.isnan() if math.isnan(ignore_index) else target == ignore_index
        is_valid, keep = is_valid | ignored, is_valid & ~ignored
    if on_invalid == 'raise':
        raise_if_outside_unit(target, ~is_valid)
    values = target.to(dtype)
    if on_invalid == 'clip':
        values = torch.where(is_valid, values, values.nan_to_num(0.0).clamp(0, 1))
        keep = torch.ones_like(is_valid) if ignored is None else ~ignored
    excluded = ~keep
    return BinaryTarget(values.masked_fill(excluded, 0), excluded, is_valid, is_valid.sum(), ignored)


def mask_scores(logits: Tensor, excluded: Tensor) -> Tensor:
    """Replace excluded scores by ``-CERTAIN``, for which a target of 0 has loss 0 and gradient 0.

    If the scores are a slice of a larger tensor, the result has the same strides, because PyTorch's vectorized loops
    for contiguous scores would round the gradients differently.
    """
    masked = logits.masked_fill(excluded, -CERTAIN)
    if masked.stride() == logits.stride() or masked.shape != logits.shape or not _is_slice(logits):
        return masked
    return logits.new_empty_strided(logits.shape, logits.stride()).copy_(masked)


def _is_slice(tensor: Tensor) -> bool:
    """Return True if all elements have their own memory, unlike those of an expanded tensor."""
    reach = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape)):
        if size > 1 and stride < reach:
            return False
        reach += (size - 1) * stride
    return True


#: ``mmguard.functional.label_kernel.sanitize_labels`` if the Triton kernel is enabled, else ``None``.
kernel: Optional[Callable[[Tensor, int, int, bool], Tensor]] = None


class ClassTarget(NamedTuple):
    """Result of ``sanitize_class_target``, with the arguments of the call."""

    target: Tensor  #: int64, the shape of the input: a class in ``[0, num_classes)``, or ``excluded``.
    given: Tensor  #: The input, int64.
    num_classes: int
    ignore_index: int
    on_invalid: str
    excluded: int  #: The label of elements outside the loss; pass it to PyTorch as ``ignore_index``.
    counted: Optional[Tensor] = None  #: Counts from :data:`kernel`: kept, valid, seen, skipped, remapped, table.

    def count_kept(self) -> Tensor:
        """Count the elements that are not excluded from the loss: int64, 0-d."""
        if self.counted is not None:
            return self.counted[0]
        return (self.target != self.excluded).count_nonzero()

    def count_valid(self) -> Tensor:
        """Count the elements that are a class or ``ignore_index``: int64, 0-d."""
        return self.find_valid().count_nonzero() if self.counted is None else self.counted[1]

    def find_ignored(self) -> Tensor:
        """Find elements equal to ``ignore_index`` (with ``'clip'``, after clamping): bool, the shape of the input."""
        return self.target == self.excluded if self.on_invalid == 'clip' else self.given == self.ignore_index

    def find_valid(self) -> Tensor:
        """Find the elements that are a class or ``ignore_index``: bool, the shape of the input."""
        if self.excluded == self.ignore_index:
            return self.target == self.given
        ignores_class = 0 <= self.ignore_index < self.num_classes
        if ignores_class or self.on_invalid == 'clip':
            is_class = self.given.clamp(0, self.num_classes - 1) == self.given
        else:
            is_class = self.target != self.excluded
        return is_class if ignores_class else is_class | (self.given == self.ignore_index)

    def count_by_value(self) -> Tuple[Tensor, Tensor]:
        """Return :meth:`count_kept`, and the result of :func:`build_counts` with a count per invalid value appended.

        If all classes and ``ignore_index`` have a count, the kept and valid elements are summed from these counts.
        """
        if self.counted is not None:
            return self.counted[0], self.counted[2:]
        table, ignored_at = count_values(self.given), self.ignore_index - LOWEST
        classes = table[-LOWEST : self.num_classes - LOWEST]
        if self.on_invalid != 'clip' and is_in_table(self.num_classes) and is_in_table(self.ignore_index):
            kept = in_classes = classes.sum()
            ignored = table[ignored_at].clone()
            ignores_class = 0 <= self.ignore_index < self.num_classes
            kept, valid = (kept - ignored, in_classes) if ignores_class else (kept, in_classes + ignored)
        else:
            kept, valid = self.count_kept(), self.count_valid()
        classes.zero_()
        if is_in_table(self.ignore_index):
            table[ignored_at].zero_()
        return kept, torch.cat((build_counts(self.given.numel(), valid, self.on_invalid), table))

    def look_up_weights(self, class_weight: Tensor) -> Tensor:
        """Return class weights in the shape of ``target``, 0 for excluded elements (with the label ``num_classes``)."""
        padded = F.pad(class_weight.detach(), (0, 1))
        return padded.index_select(0, self.target.flatten()).view_as(self.target)


def sanitize_class_target(
    target: Tensor, num_classes: int, ignore_index: int, on_invalid: str, mark_ignored: bool = False
) -> ClassTarget:
    """Set the label of every excluded element to ``num_classes``, with a single copy of the labels.

    If ``mark_ignored`` is true, set it to ``ignore_index`` instead, so that only valid elements keep their label. This
    has no effect with ``'clip'``, or if ``ignore_index`` is a class. ``on_invalid='raise'`` waits for the device.

    Example:
        >>> sanitized = sanitize_class_target(torch.tensor([0, 7, 255, 2]), 3, 255, 'ignore')
        >>> sanitized.target.tolist(), sanitized.find_valid().tolist()
        ([0, 3, 3, 2], [True, False, True, True])
        >>> sanitize_class_target(torch.tensor([0, 7, 255, 2]), 3, 255, 'ignore', mark_ignored=True).target.tolist()
        [0, 255, 255, 2]
    """
    if kernel is None or on_invalid == 'raise' or not runs_triton(target):
        return sanitize_by_operations(target, num_classes, ignore_index, on_invalid, mark_ignored)
    buffer = kernel(target, num_classes, ignore_index, on_invalid == 'clip')
    counted, clean = buffer.split((TABLE_FROM + HIGHEST - LOWEST + 1, target.numel()))
    clean = clean.view(target.shape)
    return ClassTarget(clean, target.long(), num_classes, ignore_index, on_invalid, num_classes, counted)


def sanitize_by_operations(
    target: Tensor, num_classes: int, ignore_index: int, on_invalid: str, mark_ignored: bool = False
) -> ClassTarget:
    """Compute :func:`sanitize_class_target` with PyTorch's operations, not with the Triton kernel."""
    given, excluded = target.long(), num_classes
    ignores_class = 0 <= ignore_index < num_classes
    # On CUDA PyTorch reads ignore_index as an int of 32 bits.
    if mark_ignored and on_invalid != 'clip' and not ignores_class and -(2**31) <= ignore_index < 2**31:
        clamped, excluded = given.clamp(0, num_classes - 1), ignore_index
        target = clamped.masked_fill_(clamped != given, excluded)
    elif on_invalid == 'clip':
        target = given.clamp(0, num_classes - 1)
    else:
        target = F.threshold(given, -1, num_classes).clamp_(max=num_classes)  # negative ones first
    if ignores_class:
        target.masked_fill_(target == ignore_index, num_classes)  # clamping may produce it
    elif on_invalid == 'clip':
        target.masked_fill_(given == ignore_index, num_classes)
    sanitized = ClassTarget(target, given, num_classes, ignore_index, on_invalid, excluded)
    if on_invalid == 'raise':
        raise_if_invalid(given, ~sanitized.find_valid(), num_classes, ignore_index)
    return sanitized
