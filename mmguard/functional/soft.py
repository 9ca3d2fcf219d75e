"""Cross entropy with soft targets (MixUp, CutMix, distillation): a distribution over the classes per element."""

from __future__ import annotations

from typing import Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor

from mmguard.functional.checks import check_class_weight, check_scores, check_weight, shape_of
from mmguard.functional.distributions import Distributions, sanitize_distributions
from mmguard.functional.reduction import AvgFactor, reduce_loss, scale_avg_factor
from mmguard.functional.sanitize import kept_and_counted
from mmguard.functional.target_checks import class_dim


def soft_elements(logits: Tensor, sanitized: Distributions, weight: Optional[Tensor], label_smoothing: float) -> Tensor:
    r"""Compute the cross entropy of each element, (N, \*); 0 with gradient 0 if an element takes no part."""
    scores = logits.masked_fill(~sanitized.keep.unsqueeze(class_dim(logits)), 0)
    loss = F.cross_entropy(scores, sanitized.target, weight, reduction='none', label_smoothing=label_smoothing)
    return loss.masked_fill(~sanitized.keep, 0)


def soft_cross_entropy(
    logits: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    *,
    class_weight: Optional[Tensor] = None,
    reduction: str = 'mean',
    avg_factor: Optional[AvgFactor] = None,
    ignore_index: Optional[int] = None,
    avg_non_ignore: bool = False,
    on_invalid: str = 'ignore',
) -> Tuple[Tensor, Tensor]:
    r"""Compute the cross entropy with soft targets by the rules of the frameworks (mmpretrain's ``use_soft``).

    ``loss = sum_i w_i sum_k c_k t_ik (-log softmax(x_i)_k) / D``, with element weights ``w``, class weights ``c`` and
    ``D`` the number of elements, or ``avg_factor``. Rows that are not a distribution are excluded; ignored ones are
    counted in ``D`` unless ``avg_non_ignore``.

    Args:
        logits (Tensor): Shape (N, C, \*), floating point.
        target (Tensor): The shape of ``logits``: rows along dimension 1 that add up to 1; integers (one-hot) will do.
        weight (Tensor, optional): Element weights, shape (N, \*) (sizes of 1 are broadcast).
        class_weight (Tensor, optional): Shape (C,), float32.
        reduction (str): ``'none'`` (returns (N, \*)), ``'mean'`` or ``'sum'``.
        avg_factor (float or Tensor, optional): Denominator of ``'mean'``; invalid elements leave it
            (:func:`~mmguard.functional.scale_avg_factor`).
        ignore_index (int, optional): A row of only this value (padding) is not trained on.
        avg_non_ignore (bool): Exclude ignored elements from the denominator.
        on_invalid (str): ``'ignore'``, ``'clip'`` or ``'raise'``.

    Returns:
        tuple[Tensor, Tensor]: the loss, and int64 counts (3,): elements seen, skipped, remapped.

    Raises:
        ValueError: Shapes that do not fit; ``avg_factor`` with ``'sum'``.
        TypeError: Scores that are not floating point.
        LabelGuardError: A row that is not a distribution, with ``on_invalid='raise'``.

    Example:
        >>> target = torch.tensor([[0.3, 0.7], [1.0, 1.0]])
        >>> loss, counts = soft_cross_entropy(torch.zeros(2, 2, requires_grad=True), target)
        >>> round(loss.item(), 4), counts.tolist()
        (0.6931, [2, 1, 0])
    """
    check_scores(logits)
    if logits.dim() < 2 or target.shape != logits.shape:
        raise ValueError(
            f'label has shape {shape_of(target)} ({target.dtype}), cls_score {shape_of(logits)}; soft labels hold one '
            f'probability per class, so they have the shape (N, C, ...) of the scores. Class indices need no use_soft; '
            f'or make them soft: torch.nn.functional.one_hot(label, num_classes).movedim(-1, 1).float()'
        )
    check_class_weight(class_weight, logits.shape[1])
    target = target if target.is_floating_point() else target.to(logits.dtype)
    sanitized = sanitize_distributions(target, 1, on_invalid, ignore_index)
    check_weight(weight, sanitized.keep)
    loss = soft_elements(logits, sanitized, class_weight, label_smoothing=0.0)
    if reduction != 'mean':
        return reduce_loss(loss, weight, reduction, avg_factor), sanitized.counts
    if avg_factor is None:
        avg_factor = (sanitized.keep if avg_non_ignore else ~sanitized.skipped).count_nonzero()
    else:
        counted = torch.ones_like(sanitized.keep) if weight is None else (weight != 0).expand_as(sanitized.keep)
        avg_factor = scale_avg_factor(avg_factor, *kept_and_counted(sanitized.skipped, counted))
    return reduce_loss(loss, weight, reduction, avg_factor), sanitized.counts
