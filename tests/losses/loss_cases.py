"""What the tests of the losses share: inputs, a loss with its gradient, and the formulas written out by hand."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import mmdet.models.losses
import mmseg.models.losses
import torch
import torch.nn.functional as F
from this_stack import IS_ONEDL
from torch import Tensor

import mmguard.losses.mmdet
import mmguard.losses.mmseg

#: scope -> (stock class, guarded class)
CROSS_ENTROPY = {
    'mmseg': (mmseg.models.losses.CrossEntropyLoss, mmguard.losses.mmseg.GuardedCrossEntropyLoss),
    'mmdet': (mmdet.models.losses.CrossEntropyLoss, mmguard.losses.mmdet.GuardedCrossEntropyLoss),
}

#: The width differs from the number of classes, so that weights broadcast along the wrong dimension are seen.
CLASSES = 4
SHAPES = {'2-D': (12, CLASSES), '4-D': (2, CLASSES, 3, 5)}
CLASS_WEIGHT = [0.4, 1.7, 0.9, 2.5]
EPS = torch.finfo(torch.float32).eps

#: Tolerance where the stock loss works: equal bits, but for the onedl fork, which adds up in another order.
EXACT = 1e-5 if IS_ONEDL else 0


def scores_and_labels(shape: Tuple[int, ...], seed: int = 0, num_classes: int = CLASSES) -> Tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shape, generator=generator)
    label = torch.randint(0, num_classes, (shape[0], *shape[2:]), generator=generator)
    return scores, label


def weights_like(label: Tensor, seed: int = 1) -> Tensor:
    """Element weights; some of them are 0."""
    generator = torch.Generator().manual_seed(seed)
    weight = torch.rand(label.shape, generator=generator) + 0.5
    return weight * (torch.rand(label.shape, generator=generator) > 0.3)


def assert_equal(
    actual: Tuple[Tensor, Tensor], expected: Tuple[Tensor, Tensor], note: object = '', tolerance: float = 1e-5
) -> None:
    for what, ours, theirs in zip(('value', 'gradient'), actual, expected):
        torch.testing.assert_close(
            ours,
            theirs,
            rtol=tolerance,
            atol=tolerance,
            check_dtype=False,
            equal_nan=True,
            msg=lambda text, w=what: f'{w} of {note}: {text}',
        )


def assert_same_bits(actual: Tuple[Tensor, Tensor], expected: Tuple[Tensor, Tensor], note: object = '') -> None:
    assert_equal(actual, expected, note, tolerance=EXACT)


def reduced(loss: Tensor, reduction: str, denominator: Any) -> Tensor:
    if reduction == 'none':
        return loss
    return loss.sum() if reduction == 'sum' else loss.sum() / (denominator + EPS)


def softmax_by_hand(
    scores: Tensor,
    label: Tensor,
    weight: Optional[Tensor],
    avg_factor: Any,
    *,
    reduction: str,
    class_weight: Optional[Tensor],
    ignore_index: int,
    avg_non_ignore: bool,
    by_class_weight: bool,
) -> Tensor:
    """Cross entropy with what is ignored weighing nothing; valid or ignored labels only."""
    loss = F.cross_entropy(scores, label, weight=class_weight, ignore_index=ignore_index, reduction='none')
    ignored = label == ignore_index
    if class_weight is not None and by_class_weight:
        per_label = class_weight[label.clamp(0, scores.shape[1] - 1)]
        counted = ~ignored if avg_non_ignore or not 0 <= ignore_index < scores.shape[1] else torch.ones_like(ignored)
        denominator = per_label[counted].sum()
    else:
        denominator = (~ignored).sum() if avg_non_ignore else torch.tensor(label.numel())
    if weight is not None:
        loss = loss * weight
    return reduced(loss, reduction, denominator if avg_factor is None else avg_factor)


def sigmoid_by_hand(
    scores: Tensor,
    label: Tensor,
    weight: Optional[Tensor],
    avg_factor: Any,
    *,
    reduction: str,
    class_weight: Optional[Tensor],
    ignore_index: int,
    avg_non_ignore: bool,
) -> Tensor:
    """Binary cross entropy per channel; the label C is the background. Class weights weigh the positive targets."""
    channels = scores.shape[1]
    keep = (label != ignore_index).unsqueeze(1).float().expand(scores.shape)
    classes = torch.arange(channels).view(1, -1, *[1] * (scores.dim() - 2))
    target = (label.unsqueeze(1) == classes).float() * keep
    positive = torch.ones(channels) if class_weight is None else class_weight
    positive = positive.view(classes.shape)
    loss = -(positive * target * F.logsigmoid(scores) + (1 - target) * F.logsigmoid(-scores)) * keep
    if weight is not None:
        loss = loss * weight.unsqueeze(1)
    denominator = keep.sum() if avg_non_ignore else scores.numel()
    return reduced(loss, reduction, denominator if avg_factor is None else avg_factor)
