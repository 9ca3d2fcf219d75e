"""GuardedCrossEntropyLoss(use_soft=True): mmpretrain's soft cross entropy, in every scope."""

from __future__ import annotations

import itertools
from typing import Any, Optional

import pytest
import torch
import torch.nn.functional as F
from gradients import value_and_grad
from loss_cases import CLASS_WEIGHT, CROSS_ENTROPY, EPS, SHAPES, assert_equal, scores_and_labels, weights_like
from mmengine.registry import MODELS
from torch import Tensor

from mmguard import LabelGuardError

SCOPES = pytest.mark.parametrize('scope', CROSS_ENTROPY)


def soft(scope: str, **arguments: Any) -> Any:
    return CROSS_ENTROPY[scope][1](use_soft=True, **arguments)


def soft_labels(shape: tuple, seed: int = 3) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).softmax(1)


def by_hand(
    scores: Tensor, label: Tensor, weight: Optional[Tensor], avg_factor: Any, class_weight: Any, reduction: str
) -> Tensor:
    """mmpretrain's formula, along dimension 1."""
    loss = -label * F.log_softmax(scores, dim=1)
    if class_weight is not None:
        loss = loss * torch.tensor(class_weight).view(1, -1, *[1] * (scores.dim() - 2))
    loss = loss.sum(dim=1)
    loss = loss if weight is None else loss * weight
    if reduction == 'none':
        return loss
    if reduction == 'sum':
        return loss.sum()
    return loss.mean() if avg_factor is None else loss.sum() / (avg_factor + EPS)


@SCOPES
@pytest.mark.parametrize('shape', SHAPES.values(), ids=SHAPES)
def test_valid_labels(scope: str, shape: tuple) -> None:
    scores, index = scores_and_labels(shape)
    label = soft_labels(shape)
    for reduction, weight, class_weight, avg_factor in itertools.product(
        ('none', 'mean', 'sum'), (None, weights_like(index)), (None, CLASS_WEIGHT), (None, 5.0)
    ):
        if reduction == 'sum' and avg_factor is not None:
            continue
        guarded = soft(scope, class_weight=class_weight, loss_weight=2.0)
        actual = value_and_grad(guarded, scores, label, weight, avg_factor, reduction)
        expected = value_and_grad(by_hand, scores, label, weight, avg_factor, class_weight, reduction)
        assert_equal(actual, tuple(2.0 * part for part in expected))


@SCOPES
def test_one_hot_labels_give_the_loss_of_the_indices(scope: str) -> None:
    scores, index = scores_and_labels((2, 4, 3, 5))
    one_hot = F.one_hot(index, 4).movedim(-1, 1)
    expected = value_and_grad(CROSS_ENTROPY[scope][1](), scores, index)
    for label in (one_hot, one_hot.bool(), one_hot.float()):
        assert_equal(value_and_grad(soft(scope), scores, label), expected)


@SCOPES
@pytest.mark.parametrize('avg_factor', [None, 30.0])
def test_rows_that_are_no_distribution_count_as_absent(scope: str, avg_factor: Optional[float]) -> None:
    scores, _ = scores_and_labels((30, 4))
    label = soft_labels(scores.shape)
    label[0], label[1], label[2], label[3] = 0, 1, float('nan'), torch.tensor([-1.0, 1, 1, 0])
    guarded = soft(scope, class_weight=CLASS_WEIGHT)
    loss, grad = value_and_grad(guarded, scores, label, avg_factor=avg_factor)
    assert guarded.take_counts().tolist() == [30, 4, 0]
    kept = None if avg_factor is None else 26.0
    assert_equal((loss, grad[4:]), value_and_grad(guarded, scores[4:], label[4:], avg_factor=kept))
    assert grad[:4].eq(0).all()
    loss, grad = value_and_grad(guarded, scores, torch.full_like(label, 7.0), avg_factor=avg_factor)
    assert loss == 0
    assert grad.eq(0).all()


@SCOPES
@pytest.mark.parametrize('avg_non_ignore', [False, True])
def test_padding_is_ignored_and_no_offence(scope: str, avg_non_ignore: bool) -> None:
    """mmseg pads every channel of a soft map with the ignored value."""
    scores, _ = scores_and_labels((2, 4, 3, 5))
    label = soft_labels(scores.shape)
    label[..., 3:] = 255
    guarded = soft(scope, avg_non_ignore=avg_non_ignore)
    loss, grad = value_and_grad(guarded, scores, label, ignore_index=255)
    assert guarded.take_counts().tolist() == [30, 0, 0]
    expected = value_and_grad(guarded, scores[..., :3], label[..., :3], ignore_index=255)
    share = 1.0 if avg_non_ignore else 18 / 30
    assert_equal((loss, grad[..., :3]), tuple(share * part for part in expected))
    assert grad[..., 3:].eq(0).all()


@pytest.mark.parametrize(
    'name', ['GuardedCrossEntropyLoss', 'mmseg.GuardedCrossEntropyLoss', 'mmdet.GuardedCrossEntropyLoss']
)
def test_from_a_config(name: str) -> None:
    guarded = MODELS.build(dict(type=name, use_soft=True, class_weight=CLASS_WEIGHT, loss_weight=0.5))
    scores = torch.randn(3, 4)
    label = torch.tensor([[0.3, 0.7, 0, 0], [1, 0, 0, 0], [9, 9, 9, 9]])
    loss = guarded(scores, label)
    torch.testing.assert_close(loss, 0.5 * by_hand(scores[:2], label[:2], None, None, CLASS_WEIGHT, 'mean'))
    assert 'use_soft=True' in repr(guarded)


@SCOPES
def test_misuse(scope: str, refuses: Any) -> None:
    for other in ('use_sigmoid', 'use_mask'):
        with pytest.raises(AssertionError, match='use_soft'):
            soft(scope, **{other: True})
    scores, index = scores_and_labels((2, 4, 3, 5))
    with refuses(ValueError, match=r'\(2, 3, 5\)'):
        soft(scope)(scores, index)
    with pytest.raises(ValueError, match='class_weight'):
        soft(scope, class_weight=[1.0, 2.0])(scores, scores.softmax(1))
    with pytest.raises(ValueError, match='avg_factor'):
        soft(scope)(scores, scores.softmax(1), avg_factor=3, reduction_override='sum')
    with pytest.raises(LabelGuardError) as caught:
        soft(scope, on_invalid='raise')(scores, torch.ones_like(scores))
    assert (caught.value.tallies[0].total, caught.value.tallies[0].skipped) == (30, 30)
