"""Cross entropy with soft targets (MixUp, CutMix, distillation), which are distributions over the classes."""

from __future__ import annotations

from typing import List, NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.compute import HALF_DTYPES
from mmguard.functional.validate import get_class_dim
from mmguard.labels.tally import LabelGuardError, Tally

#: Tolerance for the sum of a row of probabilities: rounding to half precision, or a smoothing that divides by C
#: instead of C - 1, is not a fault. Several classes at once (2, 3, ...), no class (0) and 0..255 are far outside.
SUM_TOLERANCE = 0.1


_MULTILABEL_ADVICE = (
    'If an element can have several classes (a yes or no for each), use '
    "mmguard.functional.binary_cross_entropy_with_logits, and check_target(..., kind='multilabel')"
)


class Distributions(NamedTuple):
    """Result of ``sanitize_distributions``."""

    target: Tensor  #: The dtype and shape of the input, excluded rows set to 0.
    excluded: Tensor  #: bool, (N, *): True for rows that are not a distribution.
    counts: Tensor  #: int64, shape (3,): elements seen, skipped and remapped.


def sanitize_distributions(target: Tensor, dim: int, on_invalid: str = 'ignore') -> Distributions:
    """Exclude rows (along ``dim``) that are not a distribution: NaN, infinite, negative, or with a sum other than 1.

    ``on_invalid='clip'`` sets negative, infinite and NaN values to 0 and divides the row by its sum; a row without a
    positive value is skipped. ``'raise'`` raises ``LabelGuardError``, and synchronizes.

    Example:
        >>> sanitized = sanitize_distributions(torch.tensor([[0.3, 0.7], [1.0, 1.0], [float('nan'), 0.0]]), dim=1)
        >>> sanitized.excluded.tolist(), sanitized.counts.tolist()
        ([False, True, True], [3, 2, 0])
        >>> sanitize_distributions(torch.tensor([[1.0, 1.0], [0.0, 0.0]]), dim=1, on_invalid='clip').target.tolist()
        [[0.5, 0.5], [0.0, 0.0]]
    """
    given = target.detach()
    total = given.sum(dim, dtype=torch.float32 if given.dtype in HALF_DTYPES else None)
    least = given.amin(dim)
    # NaN fails every comparison, so it is invalid.
    valid = ((total - 1).abs() <= SUM_TOLERANCE) & (least >= -4 * torch.finfo(given.dtype).eps)
    invalid = ~valid
    if on_invalid == 'raise':
        raise_if_no_distribution(given, invalid, dim)
    excluded, remapped = invalid, None
    if on_invalid == 'clip':
        positive = target.nan_to_num(0.0, 0.0, 0.0).clamp(min=0)
        whole = positive.sum(dim, keepdim=True)
        nothing = (whole == 0).squeeze(dim)
        target = torch.where(invalid.unsqueeze(dim), positive / whole.masked_fill(whole == 0, 1), target)
        excluded, remapped = invalid & nothing, (invalid & ~nothing).sum()
    # sum(), since torch < 2.1 cannot count_nonzero a meta tensor.
    skipped = excluded.sum()
    counts = torch.stack(
        (
            torch.full_like(skipped, invalid.numel()),
            skipped,
            torch.zeros_like(skipped) if remapped is None else remapped,
        )
    )
    return Distributions(target.masked_fill(excluded.unsqueeze(dim), 0), excluded, counts)


def raise_if_no_distribution(target: Tensor, invalid: Tensor, dim: int) -> None:
    """Raise ``LabelGuardError`` if any element of ``invalid`` is True (for debugging: this waits for the device)."""
    if not invalid.any():
        return
    rows = target.movedim(dim, -1)[invalid]
    number = rows.shape[0]
    positions = [tuple(row) for row in invalid.nonzero()[:5].tolist()]
    at = 'the only element' if target.dim() == 1 else ', '.join(map(str, positions))
    raise LabelGuardError(
        f'{number:,} of {invalid.numel():,} soft targets are not a distribution over the {target.shape[dim]} classes: '
        f'{", ".join(_describe_faults(rows))}; first at {at}, which holds {_format_row(rows[0])}. '
        f'{_suggest_correction(rows, dim)}',
        [Tally(total=invalid.numel(), skipped=number)],
        positions,
    )


def _describe_faults(rows: Tensor) -> List[str]:
    """Return a text per kind of fault with its number of rows, ``['3 that add up to 0.5']``; a row counts only once."""
    finite = rows.isfinite().all(1)
    negative = finite & (rows < 0).any(1)
    sums = rows[finite & ~negative].double().sum(1)
    faults = []
    if not finite.all():
        faults.append(f'{int((~finite).sum()):,} with NaN or infinity')
    if negative.any():
        faults.append(f'{int(negative.sum()):,} with negative values, the least {rows[negative].min().item():.4g}')
    if sums.numel():
        low, high = sums.min().item(), sums.max().item()
        span = f'{low:.4g}' if low == high else f'{low:.4g} to {high:.4g}'
        faults.append(f'{sums.numel():,} that add up to {span}')
    return faults


def _format_row(row: Tensor, limit: int = 8) -> str:
    shown = ', '.join(f'{value:.4g}' for value in row[:limit].tolist())
    return f'[{shown}{", ..." if row.numel() > limit else ""}]'


def _suggest_correction(rows: Tensor, dim: int) -> str:
    finite = rows[rows.isfinite().all(1)]
    sums = finite.sum(1)
    if ((finite == 0) | (finite == 255)).all() and (finite > 0).any():
        return 'These look like masks of 0 and 255, one per class: use target / 255'
    if ((finite == 0) | (finite == 1)).all() and (sums > 1.5).any():
        return f'{_MULTILABEL_ADVICE}; otherwise divide each row by its sum: target / target.sum({dim}, keepdim=True)'
    if finite.numel() and (finite < 0).any():
        return f'For logits, use target.softmax({dim}); after a cubic resize, use target.clamp(min=0) first'
    if finite.numel() and (sums == 0).all():
        return (
            "A row of zeros has no class: to exclude such elements, train with on_invalid='ignore'. "
            f'{_MULTILABEL_ADVICE}'
        )
    return f'A row must add up to 1: use target / target.sum({dim}, keepdim=True), or target.softmax({dim}) for logits'


def compute_soft_loss(
    logits: Tensor, sanitized: Distributions, weight: Optional[Tensor], label_smoothing: float, reduction: str
) -> Tensor:
    r"""Compute the cross entropy with soft targets; each excluded element adds 0 and has gradient 0."""
    dim = get_class_dim(logits)
    excluded, target = sanitized.excluded.unsqueeze(dim), sanitized.target
    if label_smoothing > 0:  # as PyTorch does, but before excluded rows become 0
        target = (target * (1 - label_smoothing) + label_smoothing / logits.shape[dim]).masked_fill(excluded, 0)
    return F.cross_entropy(logits.masked_fill(excluded, 0), target, weight, reduction=reduction)
